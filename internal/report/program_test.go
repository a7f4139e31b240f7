package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/layout"
)

// byAB is the sample as if ab had sent its load.
func byAB() Input {
	in := sample()
	in.Run.Experiment.Load = hakaru.Load{Program: &hakaru.ProgramLoad{Name: "ab", Options: map[string]string{
		"url": "http://{http}/9000", "connections": "500", "requests": "5000", "keep_alive": "true", "headers.Authorization": "Bearer tok-112233",
	}}}
	in.Run.Loader.Programs = map[string]string{"/usr/bin/ab": "ApacheBench, Version 2.3"}
	for i := range in.History {
		in.History[i].Totals = &hakaru.Totals{
			Took: 2140 * time.Millisecond, Good: 4990, Bad: 10, Kinds: map[string]uint64{"reset": 10},
			Quantiles: map[hakaru.Metric]float64{hakaru.P50: 0.0123},
			Command:   "ab -q -k -c 500 -n 5000 -H 'Authorization: Bearer tok-112233' -e /dev/fd/3 http://127.0.0.1:4711/9000",
		}
	}
	return in
}

func TestProgramInReports(t *testing.T) {
	in := byAB()
	var text, doc, one bytes.Buffer
	if err := Text(&text, in, layout.Style{}); err != nil {
		t.Fatal(err)
	}
	if err := JSON(&doc, in); err != nil {
		t.Fatal(err)
	}
	outputs := []hakaru.Output{{Service: hakaru.OfLoad, Text: "Complete requests:      5000\n"}}
	if err := Trial(&one, in.Run, in.History[0], outputs, layout.Style{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "trial-program.txt", one.Bytes())
	var r Report
	strict(t, doc.Bytes(), &r)
	if r.Load.Program != "ab" || r.Load.Command == nil || !strings.HasPrefix(*r.Load.Command, "ab -q -k -c 500 -n 5000") {
		t.Errorf("load %+v", r.Load)
	}
	if got := r.Trials[0].Totals; got == nil || got.Good != 4990 || got.Bad == nil || *got.Bad != 10 || got.Kinds["reset"] != 10 || got.Took != 2.14 || got.Score != nil {
		t.Errorf("totals %+v", got)
	}
	words := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{
		"load ab: GET http://{http}/9000, closed loop, 500 connections kept alive, 5000 requests, Authorization: ***",
		"as run ab -q -k -c 500 -n 5000", "window 2.14 s measured after 1 s of warm-up", "sent by /usr/bin/ab: ApacheBench, Version 2.3",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("the report does not say %q:\n%s", want, text.String())
		}
	}
	for name, out := range map[string]string{"text": text.String(), "JSON": doc.String(), "trial": one.String()} {
		if strings.Contains(out, "tok-112233") {
			t.Errorf("%s tells a secret:\n%s", name, out)
		}
	}
}

func TestProgramWithoutCounts(t *testing.T) {
	in := byAB()
	score := 12.5
	in.History[0].Totals = &hakaru.Totals{Took: time.Second, BadUnknown: true, Score: &score, Command: "./bench.sh"}
	var doc bytes.Buffer
	if err := JSON(&doc, in); err != nil {
		t.Fatal(err)
	}
	var r Report
	strict(t, doc.Bytes(), &r)
	if got := r.Trials[0].Totals; got.Bad != nil || got.Score == nil || *got.Score != 12.5 || got.Throughput != nil {
		t.Errorf("%+v", got)
	}
}
