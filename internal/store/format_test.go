package store

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hakaru"
)

var update = flag.Bool("update", false, "make the stores of testdata that are missing")

// programRun is the sample with what came later within the first format: a load
// program, a service that something else starts, settings that do nothing or act
// late, doubts from before the run.
func programRun() hakaru.Run {
	r := sampleRun()
	e := &r.Experiment
	e.Load = hakaru.Load{Program: &hakaru.ProgramLoad{Name: "ab", Options: map[string]string{"url": "http://{http}/9000", "headers.Accept": "*/*"}, Replaced: "-c takes the place of connections"}}
	e.Services = append(e.Services, hakaru.Service{Name: "proxy", Kind: "nginx", Settings: "site.conf", Attach: &hakaru.Ready{Get: "http://127.0.0.1:8080/", Status: 200},
		Apply: "cp {file} /etc/nginx/site.conf", Restart: "nginx -s reload", Undo: "cp /etc/nginx/site.conf.orig /etc/nginx/site.conf", Build: "make app", SQL: "me@unix(/run/sql)/"})
	e.Prove = []hakaru.Ask{{Service: "service", Setting: "processes", Kind: "log", Argument: "spawned worker (\\d+)", Count: true, From: hakaru.UnderLoad}}
	e.Variants[1].Idle = map[string]string{"lifetime": "lifetime needs master, which is switched off"}
	e.Variants[1].ActsAfter = map[string]time.Duration{"lifetime": time.Hour}
	r.Loader.Programs = map[string]string{"/usr/bin/ab": "ApacheBench, Version 2.3"}
	r.Warnings = []hakaru.Warning{{Code: "cannot_act", Message: "lifetime needs 1h to act"}}
	return r
}

func programResult(seq int) hakaru.Result {
	r := sampleResult(seq)
	r.Totals = &hakaru.Totals{
		Took: 2140 * time.Millisecond, Good: uint64(5000 + seq), Bad: 10, Kinds: map[string]uint64{string(hakaru.Reset): 10}, Throughput: 2336.5,
		Quantiles: map[hakaru.Metric]float64{hakaru.P50: 0.0123}, Command: "ab -q -k -c 500 -n 5000 http://127.0.0.1:4711/9000",
	}
	for i := range r.Buckets { // the answers of a program are in no bucket
		r.Buckets[i] = hakaru.Bucket{At: r.Buckets[i].At, Counters: r.Buckets[i].Counters}
	}
	switch seq % 5 {
	case 0:
		r.Void = &hakaru.Void{Reason: hakaru.VoidProgram, Evidence: "ab failed", Hint: "look at its output"}
		r.Totals = &hakaru.Totals{Failed: "ab failed", Hint: "look at its output", Command: r.Totals.Command}
	case 1:
		r.Totals = &hakaru.Totals{Took: time.Second, BadUnknown: true, Score: pointer(12.5), Command: "./bench.sh"}
	}
	return r
}

// TestFormat1 reads the stores that the first format wrote, one as it began and
// one with what came later. The files are kept for ever; one is made with
// -update, and only where it is missing.
func TestFormat1(t *testing.T) {
	const trials = 7
	for _, c := range []struct {
		fixture, id string
		run         hakaru.Run
		result      func(seq int) hakaru.Result
	}{
		{"testdata/store-v1.db", "fmtab", sampleRun(), sampleResult},
		{"testdata/store-v1-programs.db", "fmtcd", programRun(), programResult},
	} {
		t.Run(filepath.Base(c.fixture), func(t *testing.T) {
			if _, err := os.Stat(c.fixture); errors.Is(err, os.ErrNotExist) && *update {
				if hakaru.StoreFormat != 1 {
					t.Fatal("this hakaru no longer writes format 1: restore the file from the history")
				}
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				s := mustOpen(t, c.fixture)
				// The name is drawn: give it the one that the test knows.
				if err := s.rename(t.Context(), mustStore(t, s, c.run, c.result, trials), c.id); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(c.fixture)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "store.db") // reading makes a log beside it
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			checkRun(t, mustOpen(t, path), c.id, c.run, c.result, trials)
		})
	}
}
