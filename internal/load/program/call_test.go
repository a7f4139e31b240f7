package program

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/grammar"
)

func TestCall(t *testing.T) {
	for _, c := range []struct {
		name   string
		spec   hakaru.ProgramSpec
		d      time.Duration
		warmUp bool
		want   string // words, blanks between them
		files  []string
	}{
		{"ab by time", hakaru.ProgramSpec{Name: "ab", Connections: 4, Options: map[string]string{"url": "http://127.0.0.1:80"}}, 2 * time.Second, false,
			"ab -q -c 4 -t 2 -n 600000 -e /dev/fd/3 http://127.0.0.1:80/", []string{""}},
		{"ab by count", hakaru.ProgramSpec{Name: "ab", Connections: 500, Counted: true, Options: map[string]string{"url": "http://h/9000", "requests": "5000", "timeout": "90"}}, time.Minute, false,
			"ab -q -s 90 -c 500 -n 5000 -e /dev/fd/3 http://h/9000", []string{""}},
		{"its warm-up is by time", hakaru.ProgramSpec{Name: "ab", Connections: 500, Counted: true, Options: map[string]string{"url": "http://h/9000", "requests": "5000"}}, 3 * time.Second, true,
			"ab -q -c 500 -t 3 -n 900000 -e /dev/fd/3 http://h/9000", []string{""}},
		{"ab with all", hakaru.ProgramSpec{Name: "ab", Connections: 1, Options: map[string]string{
			"url": "http://h/", "keep_alive": "true", "any_length": "true", "body": "a=1", "headers.X-B": "two words", "headers.Content-Type": "application/json",
			"args": "-C 'a=1; b=2'", "program": "./ab2"}}, time.Second, false,
			"./ab2 -q -k -l -c 1 -t 1 -n 300000 -p /dev/fd/4 -T application/json -H 'X-B: two words' -e /dev/fd/3 -C 'a=1; b=2' http://h/", []string{"", "a=1"}},
		{"ab for ten minutes asks for no more memory than it may have", hakaru.ProgramSpec{Name: "ab", Connections: 4, Options: map[string]string{"url": "http://h/"}}, 10 * time.Minute, false,
			"ab -q -c 4 -t 600 -n 20000000 -e /dev/fd/3 http://h/", []string{""}},
		{"ab puts", hakaru.ProgramSpec{Name: "ab", Connections: 1, Options: map[string]string{"url": "http://h/", "method": "PUT", "body": "x"}}, time.Second, false,
			"ab -q -c 1 -t 1 -n 300000 -u /dev/fd/4 -e /dev/fd/3 http://h/", []string{"", "x"}},
		{"ab with a method", hakaru.ProgramSpec{Name: "ab", Connections: 1, Options: map[string]string{"url": "http://h/", "method": "DELETE"}}, time.Second, false,
			"ab -q -c 1 -t 1 -n 300000 -m DELETE -e /dev/fd/3 http://h/", []string{""}},
		{"ab heads", hakaru.ProgramSpec{Name: "ab", Connections: 1, Options: map[string]string{"url": "http://h/", "method": "HEAD"}}, time.Second, false,
			"ab -q -c 1 -t 1 -n 300000 -i -e /dev/fd/3 http://h/", []string{""}},
		{"wrk", hakaru.ProgramSpec{Name: "wrk", Connections: 64, Options: map[string]string{"url": "http://h?a"}}, 20 * time.Second, false,
			"wrk --latency -t 2 -c 64 -d 20s 'http://h?a'", nil},
		{"wrk, one connection", hakaru.ProgramSpec{Name: "wrk", Connections: 1, Options: map[string]string{"url": "http://h/"}}, time.Second, true,
			"wrk --latency -t 1 -c 1 -d 1s http://h/", nil},
		{"wrk with all", hakaru.ProgramSpec{Name: "wrk", Connections: 8, Options: map[string]string{
			"url": "http://h/", "threads": "3", "timeout": "5", "headers.A": "b", "method": "PATCH", "body": "\"]]\n", "args": "-H 'c: d'"}}, time.Second, false,
			"wrk --latency -t 3 -c 8 -d 1s --timeout 5s -H 'A: b' -s /dev/fd/3 -H 'c: d' http://h/",
			[]string{"wrk.method = \"PATCH\"\nwrk.body = \"\\034\\093\\093\\010\"\n"}},
		{"a command", hakaru.ProgramSpec{Name: "command", Counted: true, Options: map[string]string{"run": "./bench.sh 127.0.0.1:80 'a b'"}}, time.Minute, false,
			"./bench.sh 127.0.0.1:80 'a b'", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := Find(c.spec.Name)
			got, err := p.Call(c.spec, c.d, c.warmUp)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, grammar.Join(got.Argv)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if d := cmp.Diff(c.files, got.Files); d != "" {
				t.Errorf("files -want +got\n%s", d)
			}
		})
	}
}

func TestCallRefuses(t *testing.T) {
	for name, spec := range map[string]hakaru.ProgramSpec{
		"a unix socket":  {Name: "ab", Options: map[string]string{"url": "http:///run/app.sock/"}},
		"no URL":         {Name: "wrk", Options: map[string]string{"url": "unix:/run/app.sock:/"}},
		"an open quote":  {Name: "ab", Options: map[string]string{"url": "http://h/", "args": "'"}},
		"nothing to run": {Name: "command", Options: map[string]string{"run": ""}},
	} {
		p, _ := Find(spec.Name)
		if call, err := p.Call(spec, time.Second, false); err == nil {
			t.Errorf("%s: %v", name, call)
		}
	}
	if _, known := Find("sysbench"); known {
		t.Error("sysbench is known")
	}
}

// Every value stays one word, whatever is in it.
func TestNamesInWords(t *testing.T) {
	names := hakaru.Names{"http": "127.0.0.1:80", "dir": "/tmp/it's here"}
	got, err := expanded(map[string]string{"run": "sh bench.sh {http} {dir}/x", "url": "http://{http}/", "score": `s{2}`}, names)
	if err != nil {
		t.Fatal(err)
	}
	call, err := command{}.Call(hakaru.ProgramSpec{Options: got}, time.Second, false)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"sh", "bench.sh", "127.0.0.1:80", "/tmp/it's here/x"}, call.Argv); d != "" {
		t.Error(d)
	}
	if got["url"] != "http://127.0.0.1:80/" || got["score"] != "s{2}" {
		t.Errorf("%v", got)
	}
}

func TestVersionLine(t *testing.T) {
	for text, want := range map[string]string{
		"This is ApacheBench, Version 2.3 <$Revision$>\nCopyright 1996":      "ApacheBench, Version 2.3",
		"\nwrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\n x": "wrk debian/4.1.0-3+b2 [epoll]",
		"": "",
	} {
		if got := versionLine(text); got != want {
			t.Errorf("%q of %q", got, strings.TrimSpace(text))
		}
	}
}
