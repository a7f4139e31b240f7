package wording

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/layout"
)

// TestSwap: the same verdict the other way round reads the other way round.
func TestSwap(t *testing.T) {
	for _, c := range []struct {
		ratio, low, high float64
		verdict          hakaru.Verdict
		want             string
	}{
		{1.25, 1.2, 1.3, hakaru.Better, "+25.0 % (+20.0 to +30.0) better"},
		{0.8, 0.77, 0.833, hakaru.Worse, "-20.0 % (-23.0 to -16.7) worse"},
		{3.97, 3.9, 4.05, hakaru.Better, "3.97 times (3.9 to 4.05) better"},
		{3.9714, 3.9006, 12.0491, hakaru.Better, "3.97 times (3.9 to 12) better"},
		{1, 0.99, 1.01, hakaru.Same, "0.0 % (-1.0 to +1.0) no difference that matters (-0.9 to +0.9)"},
	} {
		j := hakaru.Comparison{Metric: hakaru.Throughput, Base: "a", Other: "b", Blocks: 5, Ratio: c.ratio, Low: c.low, High: c.high,
			SameLow: c.low * 1.001, SameHigh: c.high * 0.999, Verdict: c.verdict, Judged: true}
		if got := layout.Flat(Change(&j) + " " + Verdict(&j).Text); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// A ratio that has no interval is told without one, and a pair without a ratio has
// no figure.
func TestChangeWithoutInterval(t *testing.T) {
	for want, c := range map[string]hakaru.Comparison{
		"+50.0 % (no interval)":    {Blocks: 1, Ratio: 1.5},
		"3.97 times (no interval)": {Blocks: 1, Ratio: 3.97},
		"-":                        {Blocks: 3},
	} {
		if got := layout.Flat(Change(&c)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// More data would not help a pair that cannot act.
func TestCannotAct(t *testing.T) {
	c := hakaru.Comparison{Blocks: 5, Judged: true, Warnings: []hakaru.Warning{{Code: compare.WarnCannotAct}}}
	if got := Verdict(&c).Text; got != "not judged: it cannot act" {
		t.Error(got)
	}
	c.Warnings[0].Code = compare.WarnNoSpread
	if got := Verdict(&c).Text; got != "not judged: told too coarsely" {
		t.Error(got)
	}
	c.Metric, c.Warnings[0].Code = hakaru.Capacity, compare.WarnZero
	if got := Verdict(&c).Text; got != "not judged: the capacity of one alone was 0" {
		t.Error(got)
	}
	c.Warnings[0].Code = compare.WarnBehind
	if got := Verdict(&c).Text; got != "not judged: both fell behind the rate" {
		t.Error(got)
	}
	c.Warnings[0].Code = compare.WarnDrift
	if got := Verdict(&c).Text; got != "not enough data" {
		t.Error(got)
	}
}

// Warnings that differ in figures alone are one doubt; those of another service
// or of another code are not.
func TestLikeness(t *testing.T) {
	of := func(code, message string) string { return Likeness(hakaru.Warning{Code: code, Message: message}) }
	same := [][2]string{
		{"other programs took 12 % of the machine", "other programs took 9.5 % of the machine"},
		{"shared CPUs that were 97 % busy with them", "shared CPUs that were 100 % busy with them"},
		{"a sample came 120ms after its time", "a sample came 1.2s after its time"},
		{"the run took 980 ms: short", "the run took 1 min 2 s: short"},
		{"3 of 5000 answers were errors of the service (3 reset)", "12 of 4800 answers were errors of the service (2 reset, 10 closed)"},
	}
	for _, pair := range same {
		if a, b := of("x", pair[0]), of("x", pair[1]); a != b {
			t.Errorf("%q and %q", a, b)
		}
	}
	for _, pair := range [][2]string{{of("x", "app has more than 100 threads"), of("x", "db has more than 100 threads")}, {of("x", "a"), of("y", "a")}} {
		if pair[0] == pair[1] {
			t.Errorf("%q and %q", pair[0], pair[1])
		}
	}
}

// Long proofs stay readable in 80 columns, and what is the same at three moments
// is told once.
func TestProofs(t *testing.T) {
	log := hakaru.Proof{Service: "service", Setting: "threads", Asked: "2", Found: "spawned uWSGI worker 1 (pid: 21597, cores: 2)", Source: "output of the service", When: hakaru.AtReady, Holds: hakaru.Yes}
	later, end := log, log
	later.When, end.When = hakaru.UnderLoad, hakaru.AtEnd
	proofs := []hakaru.Proof{
		log,
		{Service: "service", Setting: "listen", Asked: "1024", Found: "1024 on 127.0.0.1:41234", When: hakaru.AtReady, Holds: hakaru.Yes,
			Source: "backlog granted by the kernel (socket diagnostics), to pid 21597 (/usr/bin/uwsgi --ini /run/hakaru/k3f9a/b1/uwsgi.ini --a-long-option with-its-value)"},
		{Service: "service", Setting: "max-worker-lifetime", Asked: "30", Found: "it acts after 30s, and a trial ends after 7s"},
		{Service: "service", Setting: "db-password", Asked: "GEHEIM", Found: "GEHEIM", Source: "environ of pid 12", When: hakaru.AtReady, Holds: hakaru.No},
		later, end,
	}
	var d layout.Document
	d.Add("Proofs", Proofs(proofs, true))
	var b bytes.Buffer
	if err := layout.Text(&b, d, layout.Style{}); err != nil {
		t.Fatal(err)
	}
	want := `Proofs
  setting              asked  at      holds       found
  threads              2      always  yes         spawned uWSGI worker 1 (pid:
                                                  21597, cores: 2), by output of
                                                  the service
  listen               1024   ready   yes         1024 on 127.0.0.1:41234, by
                                                  backlog granted by the kernel
                                                  (socket diagnostics), to pid
                                                  21597
  max-worker-lifetime  30             not proved  it acts after 30s, and a trial
                                                  ends after 7s
  db-password          ***    ready   no          ***, by environ of pid 12
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(b.String(), "GEHEIM") {
		t.Error("it tells a secret")
	}
}

// The numbers of one trial's processes say nothing of another's.
func TestByInTrials(t *testing.T) {
	for source, want := range map[string]string{
		"cmdline of pid 12 (4 of 4 processes)":                                           "cmdline (4 of 4 processes)",
		"processes of the service: pids 12, 13, 14 and 3 more":                           "processes of the service",
		"backlog granted by the kernel (socket diagnostics), to pid 9 (uwsgi --ini (x))": "backlog granted by the kernel (socket diagnostics)",
		"file /tmp/hakaru-efbcd89915d1a004/nginx.conf as written":                        "file {hakaru.dir}/nginx.conf as written",
		"GET /status": "GET /status",
	} {
		if got := ByInTrials(source); got != want {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
}
