package store

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
)

// writerEnv makes the test binary the writing process of TestTwoProcesses.
const writerEnv = "HAKARU_TEST_STORE"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		if err := write(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// write stores a run and then trials without end, and says each number when it
// is stored.
func write(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path)
	if err != nil {
		return err
	}
	id, err := s.NewRun(ctx, sampleRun())
	if err != nil {
		return err
	}
	fmt.Println(id)
	for seq := 1; ; seq++ {
		r := sampleResult(seq)
		if err := s.Append(ctx, id, r, sampleOutputs(seq)); err != nil {
			return err
		}
		fmt.Println(seq)
	}
}

var began = time.Date(2026, 3, 1, 9, 30, 0, 123456789, time.UTC)

func pointer[T any](v T) *T { return &v }

// sampleRun has something in every kind of field: pointers, maps, times, null
// values.
func sampleRun() hakaru.Run {
	return hakaru.Run{
		Name: "fib", Started: began, Ended: pointer(began.Add(time.Minute)), State: hakaru.RunDone,
		Experiment: hakaru.Experiment{
			Name: "fib", Question: "Which?", Dir: "/srv/fib",
			Sources:  []hakaru.File{{Path: "/srv/fib/hakaru.yaml", Content: "question: Which?\n"}, {Path: "/srv/fib/my.cnf", Content: "password = geheim\n", Mode: 0o600}},
			Services: []hakaru.Service{{Name: "service", Kind: "command", Run: []string{"./fib"}, Env: []hakaru.EnvVar{{Name: "A", Value: pointer("")}, {Name: "B"}}}},
			Variants: []hakaru.Variant{{Name: "base"}, {Name: "four", Settings: []hakaru.Setting{{Name: "processes", Level: "4", Value: pointer("4")}, {Name: "log", Level: "none"}}}},
			Levels:   []hakaru.Factor{{Name: "mix", Levels: []hakaru.Setting{{Name: "mix", Level: "ro", Value: pointer("ro")}}}},
			Strata:   []map[string]string{{"mix": "ro"}}, Baseline: "base", Pairs: []hakaru.Pair{{Base: "base", Other: "four"}},
			Goal: hakaru.Throughput, Limits: []hakaru.Limit{{Metric: hakaru.Errors, Bound: 0.01, Implied: true}},
			Design:    hakaru.Design{Method: hakaru.MethodCompare, Blocks: 28, Matters: 0.03, Seed: 1<<64 - 1, Calibrate: 6},
			ActsAfter: map[string]time.Duration{"lifetime": 30 * time.Second},
		},
		Service: hakaru.Environment{Hakaru: "0.1", Kernel: "6.1", CPUs: 2, Memory: 1 << 40, Limits: map[string]string{"nofile": "1024"}},
		Frozen: &hakaru.Frozen{Alpha: 0.05, Matters: 0.03, Comparison: 1, Looks: []int{3, 5}, Level: 0.025, Blocks: 5,
			Noise: hakaru.Noise{Trials: 6, CV: map[hakaru.Metric]float64{hakaru.Throughput: 0.021}, BlocksNeeded: map[hakaru.Metric]int{hakaru.Throughput: 4}}},
		Done:     &hakaru.Done{State: hakaru.Decided, Text: "All is decided."},
		Warnings: []hakaru.Warning{{Code: "shared_cpus", Message: "load and service shared CPUs"}},
	}
}

func sampleResult(seq int) hakaru.Result {
	r := hakaru.Result{
		Trial:   hakaru.Trial{Seq: seq, Phase: hakaru.Compare, Block: (seq + 1) / 2, Attempt: 1, Variant: []string{"four", "base"}[seq%2], At: map[string]string{"mix": "ro"}, Host: "local"},
		Started: began.Add(time.Duration(seq) * time.Second), Took: 3 * time.Second, WarmUp: time.Second, Window: 2 * time.Second,
		Counters:     []hakaru.Counter{{Name: hakaru.CounterCPU, Of: "service"}, {Name: hakaru.CounterMemory, Of: "service", Gauge: true}},
		Measurements: []hakaru.Measurement{{Metric: hakaru.Throughput, Value: 187.25 + float64(seq), Unit: "1/s"}},
		Proofs:       []hakaru.Proof{{Service: "service", Setting: "processes", Asked: "4", Found: "4", Source: "GET /status", When: hakaru.AtReady, Holds: hakaru.Yes}},
		Warnings:     []hakaru.Warning{{Code: "busy_neighbours", Message: "others took 12 %"}},
	}
	for i := range 6 {
		r.Buckets = append(r.Buckets, hakaru.Bucket{At: time.Duration(i) * hakaru.BucketWidth, Good: uint64(90 + i), Bad: 1,
			Kinds: map[string]uint64{string(hakaru.Reset): 1}, Latency: []byte{0, 255, byte(i)}, Counters: []float64{0.25, 1 << 20}})
	}
	if seq%5 == 0 {
		r.Void = &hakaru.Void{Reason: hakaru.VoidOthers, Evidence: "others took 61 %", Hint: "wait"}
	}
	return r
}

func sampleOutputs(seq int) []hakaru.Output {
	return []hakaru.Output{
		{Service: "service", Text: fmt.Sprintf("listening\x00\xff\ntrial %d\n", seq), Cut: 12},
		{Service: "nginx"},
	}
}

// stored is what Append makes of a result.
func stored(id string, r hakaru.Result) hakaru.Result { r.Run = id; return r }

func mustOpen(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustRun(t *testing.T, s *Store, trials int) string {
	t.Helper()
	return mustStore(t, s, sampleRun(), sampleResult, trials)
}

func mustStore(t *testing.T, s *Store, run hakaru.Run, result func(seq int) hakaru.Result, trials int) string {
	t.Helper()
	id, err := s.NewRun(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	for seq := 1; seq <= trials; seq++ {
		if err := s.Append(t.Context(), id, result(seq), sampleOutputs(seq)); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: -want +got\n%s", what, d)
	}
}

func TestRoundTripOverReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new dir?#%", "store.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	id := mustRun(t, s, 7)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkSample(t, mustOpen(t, path), id, 7)
}

// checkSample reads everything of a run of sampleRun and sampleResults.
func checkSample(t *testing.T, s *Store, id string, trials int) {
	t.Helper()
	checkRun(t, s, id, sampleRun(), sampleResult, trials)
}

// checkRun reads everything of a run that mustStore stored.
func checkRun(t *testing.T, s *Store, id string, want hakaru.Run, result func(seq int) hakaru.Result, trials int) {
	t.Helper()
	ctx := t.Context()
	want.ID = id
	r, err := s.Find(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "run", r, want)
	history, err := s.History(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	light, err := s.Trials(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if len(history) != trials || len(light) != trials {
		t.Fatalf("%d and %d trials, want %d", len(history), len(light), trials)
	}
	void := 0
	for i := range trials {
		seq := i + 1
		want := stored(id, result(seq))
		equal(t, "trial", history[i], want)
		one, err := s.Trial(ctx, id, seq)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "one trial", one, want)
		want.Buckets = nil
		equal(t, "trial without buckets", light[i], want)
		out, err := s.Outputs(ctx, id, seq)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "outputs", out, sampleOutputs(seq))
		if want.Void != nil {
			void++
		}
	}
	runs, err := s.Runs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "list", runs, []hakaru.RunInfo{{ID: id, Name: r.Name, Started: r.Started, Ended: r.Ended, State: r.State, Trials: trials, Void: void}})
}

// rename gives a run another id, in the columns and in the bodies.
func (s *Store) rename(ctx context.Context, old, id string) error {
	r, err := s.Find(ctx, old)
	if err != nil {
		return err
	}
	r.ID = id
	body, err := packJSON(r)
	if err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, "UPDATE run SET id = ?, body = ? WHERE id = ?", id, body, old); err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, "UPDATE trial SET body = json_replace(body, '$.run', ?)", id)
	return err
}

func TestPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hakaru")
	path := filepath.Join(dir, "store.db")
	s := mustOpen(t, path)
	mustRun(t, s, 1)
	for name, want := range map[string]os.FileMode{dir: os.ModeDir | 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s is %v, want %v", filepath.Base(name), info.Mode(), want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("a store that was made readable for others stays %v (%v)", info.Mode(), err)
	}
	names, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(names) > 0 {
		t.Errorf("left behind: %v (%v)", names, err)
	}
}

func TestFind(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "store.db"))
	if _, err := s.Find(t.Context(), Last); !errors.Is(err, ErrNotFound) {
		t.Errorf("last of an empty store: %v", err)
	}
	for _, id := range []string{"abcde", "abxyz", "kmnpq"} {
		if err := s.rename(t.Context(), mustRun(t, s, 0), id); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ text, want, err string }{
		{"abcde", "abcde", ""},
		{"abx", "abxyz", ""},
		{"k", "kmnpq", ""},
		{"last", "kmnpq", ""},
		{"ab", "", "find run ab: several runs begin so: abxyz, abcde"},
		{"zz", "", "not in the store"},
		{"", "", "not in the store"},
		{"*", "", "not in the store"},
		{"a%", "", "not in the store"},
		{"ABCDE", "", "not in the store"},
	} {
		r, err := s.Find(t.Context(), c.text)
		switch {
		case c.err == "" && (err != nil || r.ID != c.want):
			t.Errorf("%q: %q, %v; want %q", c.text, r.ID, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || hint(err) == ""):
			t.Errorf("%q: %v (hint %q); want %q", c.text, err, hint(err), c.err)
		}
	}
	var a *AmbiguousError
	if _, err := s.Find(t.Context(), "a"); !errors.As(err, &a) || len(a.Candidates) != 2 {
		t.Errorf("candidates: %v", err)
	}
}

func hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 2000 {
		id := newID()
		if len(id) != 5 || strings.Trim(id, letters) != "" || strings.Contains("23456789", id[:1]) {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
	if len(seen) < 1990 { // 0.1 repetitions are expected
		t.Errorf("%d different of 2000", len(seen))
	}
}

func TestDuplicate(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "store.db"))
	id := mustRun(t, s, 3)
	for name, change := range map[string]func(*hakaru.Result){
		"same key under another number": func(r *hakaru.Result) { r.Seq = 9 },
		"same number for another key":   func(r *hakaru.Result) { r.Attempt = 2 },
	} {
		r := sampleResult(2)
		change(&r)
		err := s.Append(t.Context(), id, r, sampleOutputs(2))
		if !errors.Is(err, ErrDuplicate) {
			t.Errorf("%s: %v", name, err)
		}
	}
	checkSample(t, s, id, 3)
	other := mustRun(t, s, 3) // the same keys in another run are other trials
	if h, err := s.History(t.Context(), other); err != nil || len(h) != 3 {
		t.Errorf("%d trials, %v", len(h), err)
	}
	if err := s.Append(t.Context(), "zzzzz", sampleResult(1), nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown run: %v", err)
	}
	if err := s.Append(t.Context(), id, hakaru.Result{}, nil); err == nil || errors.Is(err, ErrDuplicate) {
		t.Errorf("no number: %v", err)
	}
}

func TestUpdate(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "store.db"))
	id := mustRun(t, s, 0)
	ended := began.Add(time.Hour)
	err := s.Update(t.Context(), id, func(r *hakaru.Run) {
		r.ID = "other" // must have no effect
		r.State, r.Ended, r.Done = hakaru.RunInterrupted, &ended, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := sampleRun()
	want.ID, want.State, want.Ended, want.Done = id, hakaru.RunInterrupted, &ended, nil
	got, err := s.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "run", got, want)
	runs, err := s.Runs(t.Context())
	if err != nil || len(runs) != 1 || runs[0].State != hakaru.RunInterrupted || !runs[0].Ended.Equal(ended) {
		t.Errorf("list: %v, %v", runs, err)
	}
	if err := s.Update(t.Context(), "zzzzz", func(*hakaru.Run) { t.Error("called") }); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown run: %v", err)
	}
}

func TestUpdateLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	a, b := mustOpen(t, path), mustOpen(t, path)
	id := mustRun(t, a, 0)
	const each = 20
	var wg sync.WaitGroup
	for _, s := range []*Store{a, b, a} {
		wg.Go(func() {
			for range each {
				if err := s.Update(context.Background(), id, func(r *hakaru.Run) { r.Service.CPUs++ }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	r, err := b.Find(t.Context(), id)
	if err != nil || r.Service.CPUs != sampleRun().Service.CPUs+3*each {
		t.Errorf("%d updates counted, %v", r.Service.CPUs-sampleRun().Service.CPUs, err)
	}
}

func TestRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := mustOpen(t, path)
	marked := sampleRun()
	marked.Name = "unmistakable-name"
	id, err := s.NewRun(t.Context(), marked)
	if err != nil {
		t.Fatal(err)
	}
	r := sampleResult(1)
	r.Warnings[0].Message = "unmistakable-warning"
	if err := s.Append(t.Context(), id, r, sampleOutputs(1)); err != nil {
		t.Fatal(err)
	}
	kept := mustRun(t, s, 2)
	if err := s.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	checkSample(t, s, kept, 2) // also: the list has no other run
	if _, err := s.History(t.Context(), id); !errors.Is(err, ErrNotFound) {
		t.Errorf("history of a removed run: %v", err)
	}
	if err := s.Remove(t.Context(), id); !errors.Is(err, ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	var left int
	if err := s.db.QueryRow("SELECT (SELECT count(*) FROM trial) + (SELECT count(*) FROM output)").Scan(&left); err != nil || left != 2+4 {
		t.Errorf("%d rows left, %v", left, err)
	}
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("unmistakable")) {
			t.Errorf("store%s still holds text of a removed run", suffix)
		}
	}
}

func TestOutputsOfUnknownTrial(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "store.db"))
	id := mustRun(t, s, 1)
	if _, err := s.Outputs(t.Context(), id, 2); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "trial 2") {
		t.Errorf("outputs: %v", err)
	}
	if _, err := s.Trial(t.Context(), id, 2); !errors.Is(err, ErrNotFound) {
		t.Errorf("trial: %v", err)
	}
}

// TestRefused has what cannot be opened, with the words a person gets.
func TestRefused(t *testing.T) {
	file := func(content string) func(t *testing.T, path string) string {
		return func(t *testing.T, path string) string {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	statements := func(from string, q ...string) func(t *testing.T, path string) string {
		return func(t *testing.T, path string) string {
			if from == "store" {
				s, err := Open(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for _, q := range q {
				if _, err := db.Exec(q); err != nil {
					t.Fatal(err)
				}
			}
			return path
		}
	}
	for _, c := range []struct {
		name       string
		make       func(t *testing.T, path string) string
		err, hints string
		is         error
	}{
		{"newer", statements("store", "PRAGMA user_version = 2"), "open the store PATH: the store is of a newer format: it has format 2, this hakaru reads up to 1", "newer one", ErrNewer},
		{"foreign", statements("", "CREATE TABLE t (x)"), "open the store PATH: the file is the database of another program", "another path", ErrForeign},
		{"text", file("this is not a database, however long one looks at it. " + strings.Repeat("x", 4096)), "open the store PATH: ", "another path", nil},
		{"empty", file(""), "open the store PATH: the file is empty", "remove it", nil},
		{"below a file", func(t *testing.T, path string) string { return file("x")(t, path) + "/store.db" }, "open the store PATH: not a directory", "writable", nil},
		{"directory", func(t *testing.T, path string) string { return filepath.Dir(path) }, "open the store PATH: it is not a regular file", "another path", nil},
		{"where nothing can be made", func(*testing.T, string) string { return "/proc/hakaru/store.db" }, "make the store PATH: ", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.make(t, filepath.Join(t.TempDir(), "store.db"))
			s, err := Open(t.Context(), path)
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if want := strings.ReplaceAll(c.err, "PATH", path); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v\nwant %s", err, want)
			}
			if !strings.Contains(hint(err), c.hints) {
				t.Errorf("hint %q, want %q in it", hint(err), c.hints)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
		})
	}
}

func TestFullDisk(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "store.db"))
	id := mustRun(t, s, 3)
	s.db.SetMaxOpenConns(1) // the bound holds for a connection
	var pages int
	if err := s.db.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if err := s.db.QueryRow(fmt.Sprintf("PRAGMA max_page_count = %d", pages)).Scan(&pages); err != nil {
		t.Fatal(err)
	}
	big := sampleResult(4)
	for i := range 3000 {
		big.Warnings = append(big.Warnings, hakaru.Warning{Code: "x", Message: strconv.Itoa(i)})
	}
	err := s.Append(t.Context(), id, big, sampleOutputs(4))
	if err == nil || !strings.Contains(err.Error(), s.Path()) || !strings.Contains(err.Error(), "trial 4 ") || hint(err) != adviceFull {
		t.Errorf("%v (hint %q)", err, hint(err))
	}
	checkSample(t, s, id, 3)
}

func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	holder := mustOpen(t, path)
	id := mustRun(t, holder, 1)
	tx, err := holder.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := open(t.Context(), path, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Append(t.Context(), id, sampleResult(2), nil)
	if err == nil || !strings.Contains(err.Error(), path) || hint(err) != adviceBusy {
		t.Errorf("%v (hint %q)", err, hint(err))
	}
	checkSample(t, s, id, 1) // reading goes on
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), id, sampleResult(2), sampleOutputs(2)); err != nil {
		t.Errorf("after the lock: %v", err)
	}
}

func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	id := mustRun(t, s, 50)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(data); i++ { // all but the first page
		data[i] = 0xa5
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), path); err == nil {
		_, err = s.History(t.Context(), id)
		s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), path) || hint(err) != adviceDamaged {
		t.Errorf("%v (hint %q)", err, hint(err))
	}
}

func TestCancelled(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "store.db"))
	id := mustRun(t, s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ctx, id, sampleResult(2), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	if _, err := s.History(ctx, id); !errors.Is(err, context.Canceled) {
		t.Errorf("history: %v", err)
	}
	checkSample(t, s, id, 1)
}

// TestMadeAtOnce has many openers of a store that is not there yet.
func TestMadeAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "store.db")
	var wg sync.WaitGroup
	const n = 4
	for range n {
		wg.Go(func() {
			s, err := Open(context.Background(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if _, err := s.NewRun(context.Background(), sampleRun()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if runs, err := mustOpen(t, path).Runs(t.Context()); err != nil || len(runs) != n {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// TestTwoProcesses reads while another process writes, kills that process, and
// finds every trial that it had reported as stored.
func TestTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := mustOpen(t, path)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	id, said := lines.Text(), 0
	for lines.Scan() {
		if said, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
		trials, err := s.Trials(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if len(trials) < said {
			t.Fatalf("trial %d was reported as stored, %d are seen", said, len(trials))
		}
		if said == 15 {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // what it still said before it died
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			said = n
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the writer ended by itself")
	}
	if said < 15 {
		t.Fatalf("the writer said only %d", said)
	}
	trials, err := s.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	// One more may be stored and not yet said.
	if len(trials) != said && len(trials) != said+1 {
		t.Fatalf("%d trials, %d were said", len(trials), said)
	}
	checkSample(t, s, id, len(trials))
	// The next process goes on where the dead one stopped.
	next := len(trials) + 1
	if err := s.Append(t.Context(), id, sampleResult(next), sampleOutputs(next)); err != nil {
		t.Error(err)
	}
}

// TestListReadsNoBodies keeps the list of a large store cheap: it is answered
// from the run table and indexes only.
func TestListReadsNoBodies(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "store.db"))
	rows, err := s.db.Query(`EXPLAIN QUERY PLAN ` + listQuery)
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		id, parent, unused int
		detail             string
	}
	plan, err := scanAll(rows, func(p *step) []any { return []any{&p.id, &p.parent, &p.unused, &p.detail} })
	if err != nil {
		t.Fatal(err)
	}
	trials := 0
	for _, p := range plan {
		if strings.Contains(p.detail, " trial ") {
			trials++
			if !strings.Contains(p.detail, "COVERING INDEX") {
				t.Errorf("reads whole rows: %s", p.detail)
			}
		}
	}
	if trials != 2 {
		t.Errorf("the plan has %d steps over trials: %v", trials, plan)
	}
}

func BenchmarkRuns10000Trials(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "store.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	id, err := s.NewRun(b.Context(), sampleRun())
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Append(b.Context(), id, sampleResult(1), nil); err != nil {
		b.Fatal(err)
	}
	_, err = s.db.Exec(`INSERT INTO trial (run, seq, block, variant, attempt, void, body, buckets)
		WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
		SELECT run, i, i, variant, attempt, i % 7 = 0, body, buckets FROM trial, n WHERE seq = 1`)
	if err != nil {
		b.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"Runs":    func() error { _, err := s.Runs(b.Context()); return err },
		"Trials":  func() error { _, err := s.Trials(b.Context(), id); return err },
		"History": func() error { _, err := s.History(b.Context(), id); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The buckets of an open loop are kept apart from lists as the others are, and come
// back where they were.
func TestOpenLoopBuckets(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "store.db"))
	open := func(seq int) hakaru.Result {
		r := sampleResult(seq)
		r.Open = &hakaru.OpenPhase{Rate: 1400, Share: 0.7, WarmUp: time.Second, Window: time.Second, Tally: &hakaru.Tally{Due: 1400, Lag: []byte{1}}}
		switch seq {
		case 1:
			r.Open.Buckets = sampleResult(2).Buckets[:4]
		case 2:
			r.Open.Buckets = sampleResult(2).Buckets[:1]
		case 3:
			r.Open.Whole = true
		case 4: // each of one bucket, both at 0
			r.Buckets, r.Open.Buckets = r.Buckets[:1], sampleResult(2).Buckets[:1]
		}
		return r
	}
	id := mustStore(t, s, sampleRun(), open, 4)
	history, err := s.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := s.Trials(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		want := stored(id, open(i+1))
		equal(t, fmt.Sprint("trial ", i+1), history[i], want)
		want.Buckets, want.Open.Buckets = nil, nil
		equal(t, fmt.Sprint("trial without buckets ", i+1), lists[i], want)
	}
}
