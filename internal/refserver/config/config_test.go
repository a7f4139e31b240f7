package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestRead(t *testing.T) {
	full := `# a comment
[serve]
listen = unix:/run/app.sock   ; another
processes=4
threads = 2
log = "/var/log/a #1.log"
max-requests = 1000
max-lifetime = 1m30s
jitter = 20%
backlog = 1
handler = fsync
wait = 5ms
cpu = 250us
stall = 100ms
stall-every = 2s
error-rate = 0.5%
alloc = 64KiB
grace = 3s
`
	got, err := Read(strings.NewReader(full), "full.ini")
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Listen: "unix:/run/app.sock", Processes: 4, Threads: 2, Log: "/var/log/a #1.log", MaxRequests: 1000,
		MaxLifetime: 90 * time.Second, Jitter: 0.2, Backlog: 1, Handler: HandlerFsync, Wait: 5 * time.Millisecond,
		CPU: 250 * time.Microsecond, Stall: 100 * time.Millisecond, StallEvery: 2 * time.Second, ErrorRate: 0.005,
		Alloc: 65536, Grace: 3 * time.Second,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	got, err = Read(strings.NewReader(""), "empty.ini")
	if err != nil || got != Default() {
		t.Errorf("an empty file: %+v, %v", got, err)
	}
	if got := (Config{Jitter: 0.1, Grace: 10 * time.Second}).Filled(); got != Default() {
		t.Errorf("a zero Config is not filled: %s", cmp.Diff(Default(), got))
	}
}

func TestReadMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.ini")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Read(bytes.NewReader(data), filepath.Base(file))
			var usage *UsageError
			if !errors.As(err, &usage) {
				t.Fatalf("no UsageError: %v", err)
			}
			got := usage.Error() + "\n"
			golden := strings.TrimSuffix(file, ".ini") + ".err"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestSet(t *testing.T) {
	for _, test := range []struct{ name, value, want, wrong string }{
		{"listen", "8080", "127.0.0.1:8080", ""},
		{"listen", ":0", "127.0.0.1:0", ""},
		{"listen", "0.0.0.0:80", "0.0.0.0:80", ""},
		{"listen", "[::1]:80", "[::1]:80", ""},
		{"listen", "localhost:80", "localhost:80", ""},
		{"listen", "::1:80", "", "neither host:port nor"},
		{"listen", "/run/x.sock", "", "neither host:port nor"},
		{"listen", "a:http", "", "port"},
		{"listen", "a:65536", "", "port"},
		{"listen", "unix:", "", "path"},
		{"listen", "unix:" + strings.Repeat("x", 108), "", "at most 107"},
		{"log", "true", "on", ""},
		{"log", "False", "off", ""},
		{"log", "./on", "./on", ""},
		{"log", "", "", "off, on or a path"},
		{"processes", "0", "", "from 1"},
		{"processes", "1e3", "", "whole number"},
		{"backlog", "1", "1", ""},
		{"wait", "5", "", "unit"},
		{"wait", "-5ms", "", "negative"},
		{"grace", "0", "0s", ""},
		{"jitter", "1.5", "", "between 0 and 1"},
		{"error-rate", "1e-9", "", "not a percentage"},
		{"error-rate", "0.0000001", "0.0000001", ""},
		{"alloc", "64K", "", "64K"},
		{"alloc", "2GiB", "", "more than"},
		{"handler", "fibb", "", "did you mean fib?"},
		{"max-requests", "-1", "", "from 0"},
		{"nothing", "1", "", "no such setting"},
	} {
		cfg := Default()
		err := cfg.Set(test.name, test.value)
		switch {
		case test.wrong == "" && err != nil:
			t.Errorf("%s = %s: %v", test.name, test.value, err)
		case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)):
			t.Errorf("%s = %s: error %v, want one about %q", test.name, test.value, err, test.wrong)
		case test.wrong == "" && cfg.Get(test.name) != test.want:
			t.Errorf("%s = %s: became %s, want %s", test.name, test.value, cfg.Get(test.name), test.want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, h := range []string{HandlerWait, HandlerCPU, HandlerStall, HandlerError, HandlerAlloc} {
		cfg := Default()
		cfg.Handler = h
		if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), "handler "+h+": set ") {
			t.Errorf("handler %s without its setting: %v", h, err)
		}
	}
	cfg := Default()
	cfg.Stall = cfg.StallEvery
	if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), "shorter than stall-every") {
		t.Errorf("a stall without an end: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("[serve]\nprocesses = 4\n")
	f.Add("log=\"a;b\"\nwait = 5ms # x\n")
	f.Add("\ufefflisten=unix:/a b;c\njitter=12.5%")
	f.Fuzz(func(t *testing.T, data string) {
		cfg, err := Read(strings.NewReader(data), "f")
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, cfg); err != nil {
			t.Fatal(err)
		}
		again, err := Read(&b, "again")
		if err != nil {
			t.Fatalf("%v, written of %+v", err, cfg)
		}
		if d := cmp.Diff(cfg, again); d != "" {
			t.Error(d)
		}
	})
}
