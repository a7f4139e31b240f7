package program

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
)

// recorded is what a program wrote, as it was recorded from ab 2.3 and wrk 4.1.
func recorded(t *testing.T, name string) Written {
	t.Helper()
	read := func(file string) string {
		b, err := os.ReadFile("testdata/" + file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(b)
	}
	w := Written{Stdout: read(name + ".stdout"), Stderr: read(name + ".stderr")}
	if w.Stdout == "" && w.Stderr == "" {
		t.Fatalf("nothing is recorded of %s", name)
	}
	if table := read(name + ".csv"); table != "" {
		w.Files = []string{table}
	}
	return w
}

type quantiles = map[hakaru.Metric]float64

func TestReadRecorded(t *testing.T) {
	for _, c := range []struct {
		name  string
		state string
		want  hakaru.Totals
	}{
		{"ab-normal", "", hakaru.Totals{Took: 52001 * time.Microsecond, Good: 500, Quantiles: quantiles{"p99": 0.001}}},
		{"ab-progress", "", hakaru.Totals{Took: 38989 * time.Microsecond, Good: 500, Quantiles: quantiles{"p99": 0.001}}},
		{"ab-keepalive", "", hakaru.Totals{Took: 1000013 * time.Microsecond, Good: 37483}},
		{"ab-timed", "", hakaru.Totals{Took: 1000014 * time.Microsecond, Good: 12506, Quantiles: quantiles{"p99": 0.001}}},
		{"ab-one", "", hakaru.Totals{Took: 523 * time.Microsecond, Good: 1}},
		{"ab-slow", "", hakaru.Totals{Took: 1505 * time.Millisecond, Good: 8, Quantiles: quantiles{"p50": 0.301, "p99": 0.301}}},
		{"ab-csv", "", hakaru.Totals{Took: 118140 * time.Microsecond, Good: 300, Quantiles: quantiles{"p50": 0.000476, "p99": 0.004601}}},
		{"ab-lengths", "", hakaru.Totals{Took: 25672 * time.Microsecond, Good: 15, Bad: 85, Kinds: map[string]uint64{"wrong_body": 85}, Quantiles: quantiles{"p99": 0.001}}},
		{"ab-lengths-l", "", hakaru.Totals{Took: 27402 * time.Microsecond, Good: 100, Quantiles: quantiles{"p99": 0.001}}},
		{"ab-500", "", hakaru.Totals{Took: 22827 * time.Microsecond, Bad: 100, Kinds: map[string]uint64{"wrong_status": 100}}},
		{"ab-mixed", "", hakaru.Totals{Took: 23584 * time.Microsecond, Good: 66, Bad: 34, Kinds: map[string]uint64{"wrong_status": 34}, Quantiles: quantiles{"p99": 0.001}}},
		{"ab-garbage", "", hakaru.Totals{Took: 5032 * time.Microsecond, Bad: 20, Kinds: map[string]uint64{"wrong_status": 20}}},
		// "Failed requests: 0", and not one byte came.
		{"ab-closes", "", hakaru.Totals{Took: 5266 * time.Microsecond, Bad: 20, Kinds: map[string]uint64{"closed": 20}}},
		// 80 resets are 240 failed requests of 100.
		{"ab-reset-r", "", hakaru.Totals{Took: 19509 * time.Microsecond, Good: 20, Bad: 80, Kinds: map[string]uint64{"reset": 80}, Quantiles: quantiles{"p99": 0.001}}},
		{"ab-reset", "exit status 104", hakaru.Totals{
			Failed: "ab ended with exit status 104: apr_socket_recv: Connection reset by peer (104)",
			Hint:   abHint("Connection reset by peer")}},
		{"ab-refused", "exit status 111", hakaru.Totals{
			Failed: "ab ended with exit status 111: apr_socket_recv: Connection refused (111)",
			Hint:   "is load.ab.url where the service listens?"}},
		{"ab-silent", "exit status 119", hakaru.Totals{
			Failed: "ab ended with exit status 119: apr_pollset_poll: The timeout specified has expired (70007)",
			Hint:   abHint("timeout specified has expired")}},
		{"ab-usage", "exit status 22", hakaru.Totals{
			Failed: "ab ended with exit status 22: ab: Cannot use concurrency level greater than total number of requests",
			Hint:   "try the command line by hand"}},
		{"ab-badurl", "exit status 22", hakaru.Totals{
			Failed: "ab ended with exit status 22: ab: invalid URL", Hint: "try the command line by hand"}},

		{"wrk-normal", "", hakaru.Totals{Took: 1099878 * time.Microsecond, Good: 48243, Quantiles: quantiles{"p50": 82e-6, "p99": 3.74e-3}}},
		{"wrk-two", "", hakaru.Totals{Took: 1000747 * time.Microsecond, Good: 39303, Quantiles: quantiles{"p50": 1.65e-3, "p99": 4.18e-3}}},
		{"wrk-slow", "", hakaru.Totals{Took: 2003338 * time.Microsecond, Good: 12, Quantiles: quantiles{"p50": 0.30049, "p99": 0.30205}}},
		{"wrk-mixed", "", hakaru.Totals{Took: 1099550 * time.Microsecond, Good: 22768, Bad: 11384, Kinds: map[string]uint64{"wrong_status": 11384}, Quantiles: quantiles{"p50": 54e-6, "p99": 126e-6}}},
		{"wrk-timeout", "", hakaru.Totals{Took: 4010 * time.Millisecond, Bad: 6, Kinds: map[string]uint64{"timeout": 6}}},
		{"wrk-none", "", hakaru.Totals{Took: time.Second}},
		{"wrk-silent", "", hakaru.Totals{Took: 3010 * time.Millisecond}},
		{"wrk-reset", "", hakaru.Totals{Took: 1100 * time.Millisecond, Bad: 5518, Kinds: map[string]uint64{"reset": 5518}}},
		// Each answer of uWSGI's HTTP router is followed by an end that it does not
		// announce.
		{"wrk-unannounced", "", hakaru.Totals{Took: 5043368046 * time.Nanosecond, Good: 21328, Closed: 21327,
			Quantiles: map[hakaru.Metric]float64{hakaru.P50: 0.11362, hakaru.P99: 0.14991}}},
		{"wrk-garbage", "", hakaru.Totals{Took: 1100 * time.Millisecond, Bad: 5586, Kinds: map[string]uint64{"reset": 5586}}},
		{"wrk-refused", "exit status 1", hakaru.Totals{
			Failed: "wrk ended with exit status 1: unable to connect to 127.0.0.1:1 Connection refused",
			Hint:   "is load.wrk.url where the service listens?"}},
		{"wrk-badurl", "exit status 1", hakaru.Totals{
			Failed: "wrk ended with exit status 1: invalid URL: nonsense", Hint: "try the command line by hand"}},
		{"wrk-usage", "exit status 1", hakaru.Totals{
			Failed: "wrk ended with exit status 1: number of connections must be >= threads", Hint: "try the command line by hand"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := "ab"
			if c.name[0] == 'w' {
				name = "wrk"
			}
			p, _ := Find(name)
			w := recorded(t, c.name)
			w.State = c.state
			got := p.Read(hakaru.ProgramSpec{}, w)
			close := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < 20*time.Microsecond })
			equal := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 })
			if d := cmp.Diff(c.want, got, close, equal); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestReadCutShort(t *testing.T) {
	for name, p := range map[string]Program{"ab-normal": ab{}, "wrk-normal": wrk{}} {
		whole := recorded(t, name)
		want := p.Read(hakaru.ProgramSpec{}, whole)
		for n := range len(whole.Stdout) {
			cut := whole
			cut.Stdout = whole.Stdout[:n]
			got := p.Read(hakaru.ProgramSpec{}, cut)
			if got.Good > want.Good || got.Good > 0 && got.Failed != "" {
				t.Fatalf("%s, cut after %d bytes: %+v", name, n, got)
			}
		}
		if got := p.Read(hakaru.ProgramSpec{}, Written{}); got.Failed == "" || got.Good != 0 {
			t.Errorf("%s of nothing: %+v", name, got)
		}
	}
}

func TestReadCommand(t *testing.T) {
	score := 12.5
	zero := 0.0
	for _, c := range []struct {
		name    string
		options map[string]string
		w       Written
		want    hakaru.Totals
	}{
		{"a score", map[string]string{"score": `SCORE: ([0-9.]+)`}, Written{Stdout: "SCORE: 12.5\n", Took: time.Second},
			hakaru.Totals{Took: time.Second, Score: &score}},
		{"the last one counts", map[string]string{"score": `^score=(\S+)$`}, Written{Stdout: "score=1\nscore=12.5\n"},
			hakaru.Totals{Score: &score}},
		{"on stderr, with thousands apart", map[string]string{"good": `ok (\S+)`, "bad": `bad (\d+)`}, Written{Stderr: "ok 1,234 bad 5"},
			hakaru.Totals{Good: 1234, Bad: 5}},
		{"one of two groups", map[string]string{"throughput": `rps (\d+)|qps (\d+)`}, Written{Stdout: "qps 77"},
			hakaru.Totals{Throughput: 77}},
		{"a score of 0 is one", map[string]string{"score": `s (\d+)`}, Written{Stdout: "s 0"},
			hakaru.Totals{Score: &zero}},
		{"no score", map[string]string{"score": `SCORE: (\d+)`, "good": `ok (\d+)`}, Written{Stdout: "ok 3\nbenchmark failed\n"},
			hakaru.Totals{
				Failed: `the load command's output tells no score: nothing matches SCORE: (\d+); it ends with: ok 3 / benchmark failed`,
				Hint:   "load.command.score is to match a line that it prints, with the number in a group"}},
		{"not a number", map[string]string{"score": `SCORE: (\S+)`}, Written{Stdout: "SCORE: NaN"},
			hakaru.Totals{
				Failed: `the load command's output tells no score: "NaN" is no number; it ends with: SCORE: NaN`,
				Hint:   "load.command.score is to match a line that it prints, with the number in a group"}},
		{"a count that is none", map[string]string{"good": `ok (\S+)`}, Written{Stdout: "ok 1.5"},
			hakaru.Totals{
				Failed: `the load command's output tells no good: "1.5" is no whole number; it ends with: ok 1.5`,
				Hint:   "load.command.good is to match a line that it prints, with the number in a group"}},
		{"it failed, whatever it printed", map[string]string{"score": `SCORE: (\S+)`}, Written{Stdout: "SCORE: 5", Stderr: "oh no", State: "exit status 3"},
			hakaru.Totals{Failed: "the load command ended with exit status 3: oh no", Hint: "run it by hand"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := command{}.Read(hakaru.ProgramSpec{Options: c.options}, c.w)
			// What was not asked for is not known.
			if c.w.State == "" && got.BadUnknown != (c.options["bad"] == "") {
				t.Errorf("bad ones unknown: %v", got.BadUnknown)
			}
			got.BadUnknown = false
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestWrkTime(t *testing.T) {
	for text, want := range map[string]float64{"82.00us": 82e-6, "1.65ms": 1.65e-3, "300ms": 0.3, "1.10s": 1.1, "2.00m": 120, "1.50h": 5400} {
		if got, ok := wrkTime(text); !ok || got-want > 1e-12 || want-got > 1e-12 {
			t.Errorf("%s is %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "1", "ms", "-nan%", "nans", "infs", "-1s", "1 s", "1.2.3s", "1ums"} {
		if got, ok := wrkTime(text); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// Whatever a program writes, no reader panics, and none finds good answers
// without a count of them in the text.
func FuzzRead(f *testing.F) {
	names, err := fs.Glob(os.DirFS("testdata"), "*.stdout")
	if err != nil || len(names) == 0 {
		f.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), "50,0.1\n99,0.2\n")
	}
	f.Add("Complete requests: 18446744073709551615\nFailed requests: 1\n (Connect: 9, Receive: 99999999999999999999,", "50,nan")
	f.Fuzz(func(t *testing.T, out, table string) {
		w := Written{Stdout: out, Files: []string{table}}
		for _, p := range []Program{ab{}, wrk{}, command{}} {
			spec := hakaru.ProgramSpec{Options: map[string]string{"score": `score (\S+)`, "good": `(\d+) requests`}}
			got := p.Read(spec, w)
			if got.Good > 0 && got.Failed != "" || got.Took < 0 {
				t.Fatalf("%T: %+v", p, got)
			}
			for _, v := range got.Quantiles {
				if !(v > 0) || !finite(v) {
					t.Fatalf("%T: %+v", p, got)
				}
			}
			if got.Good > 0 && !holdsAtLeast(out, got.Good) {
				t.Fatalf("%T: %d good answers, and no such number in %q", p, got.Good, out)
			}
		}
	})
}

// holdsAtLeast reports whether a text holds a whole number that is at least n.
func holdsAtLeast(text string, n uint64) bool {
	var value uint64
	for _, c := range text + " " {
		if c < '0' || c > '9' {
			value = 0
			continue
		}
		if value > (1<<63)/10 {
			return true
		}
		if value = value*10 + uint64(c-'0'); value >= n {
			return true
		}
	}
	return false
}
