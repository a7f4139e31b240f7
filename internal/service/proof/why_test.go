package proof

import (
	"os"
	"strings"
	"testing"
	"time"

	"hakaru"
)

const yes, no, not = hakaru.Yes, hakaru.No, hakaru.NotProved

func TestMatchAllocators(t *testing.T) {
	const (
		je    = "7f00-7f01 r-xp 0 08:01 12 /usr/lib/libjemalloc.so.2\n"
		tc    = "7e00-7e01 r-xp 0 08:01 13 /usr/lib/libtcmalloc.so.4\n"
		heap  = "7d00-7d01 rw-p 0 00:00 0 [heap]\n"
		other = "7c00-7c01 r--p 0 08:01 14 /srv/jemalloc/notes.txt\n"
	)
	for _, tt := range []struct {
		name, maps, preload string
		unknown             bool // the environment could not be read
		note                string
		holds               hakaru.Held
	}{
		{"alone", je + je + heap + other, "", false, "", yes},
		{"preloaded before one that is linked", tc + je, "/usr/lib/libjemalloc.so.2", false, "libtcmalloc.so.4 is mapped too, and comes after it in search order: jemalloc serves", yes},
		{"linked, and another preloaded", tc + je, "/a/libnothing.so /usr/lib/libtcmalloc.so.4", false, "libtcmalloc.so.4 is mapped too, and comes before it in search order (LD_PRELOAD): tcmalloc serves", no},
		{"both linked", tc + je, "", false, "libtcmalloc.so.4 is mapped too (tcmalloc comes first in maps), and which of them serves is not known", not},
		{"unknown", je + tc, "", true, "libtcmalloc.so.4 is mapped too (jemalloc comes first in maps), and which of them serves is not known", not},
	} {
		t.Run(tt.name, func(t *testing.T) {
			note, holds := matchAllocators(tt.maps, tt.preload, !tt.unknown, "jemalloc")
			if note != tt.note || holds != tt.holds {
				t.Errorf("%q, %v; want %q, %v", note, holds, tt.note, tt.holds)
			}
		})
	}
}

func TestMatchAge(t *testing.T) {
	base := time.Date(2026, 11, 30, 12, 0, 1, 0, time.UTC)
	at := func(offset time.Duration) time.Time { return base.Add(offset) }
	for _, tt := range []struct {
		name             string
		written, changed time.Duration
		starts           []time.Duration
		why              string
		holds            hakaru.Held
	}{
		{"written before", -time.Minute, -time.Minute, []time.Duration{0, time.Second}, "", yes},
		{"written just before, by coarse clocks", 15 * time.Millisecond, 15 * time.Millisecond, []time.Duration{0}, "", yes},
		{"written after", 4 * time.Second, 4 * time.Second, []time.Duration{0, time.Second}, "written at 12:00:05, the process is older (12:00:01): the file is newer than the process", no},
		{"written soon after", 50 * time.Millisecond, 50 * time.Millisecond, []time.Duration{0}, "written at 12:00:01.050, the process is older (12:00:01.000): the file is newer than the process", no},
		{"read again perhaps", 4 * time.Second, 4 * time.Second, []time.Duration{0, 6 * time.Second}, "written at 12:00:05; the main process is older (12:00:01), others are younger: it may have been read again, or not", not},
		{"moved there", -time.Hour, 4 * time.Second, []time.Duration{0}, "the process is older (12:00:01) than the last change of its name or mode (12:00:05): it may have been put there since", not},
		{"nobody", 0, 0, nil, "no process of the service is there", not},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var starts []time.Time
			for _, s := range tt.starts {
				starts = append(starts, at(s))
			}
			why, holds := matchAge(at(tt.written), at(tt.changed), starts)
			if why != tt.why || holds != tt.holds {
				t.Errorf("%q, %v; want %q, %v", why, holds, tt.why, tt.holds)
			}
		})
	}
}

// A process is not older than what it made itself.
func TestStartOfSelf(t *testing.T) {
	at, err := startOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if now := time.Now(); at.After(now) || now.Sub(at) > time.Hour {
		t.Errorf("started at %s, now %s", at, now)
	}
}

func TestUnasked(t *testing.T) {
	for _, tt := range []struct{ in, network, addr string }{
		{"tcp://127.0.0.1:9191", "tcp", "127.0.0.1:9191"},
		{"unix:/run/stats", "unix", "/run/stats"},
		{"unix:///run/stats.sock", "unix", "/run/stats.sock"},
		{"tcp://127.0.0.1:9191/", "", ""},
		{"unix:/run/app.sock:/status", "", ""},
		{"unix:/run/app.sock/status", "", ""},
		{"http://127.0.0.1:9191", "", ""},
	} {
		network, addr, ok := unasked(tt.in)
		if network != tt.network || addr != tt.addr || ok != (tt.network != "") {
			t.Errorf("%s: %q, %q, %v", tt.in, network, addr, ok)
		}
	}
}

func TestDataSource(t *testing.T) {
	for _, tt := range []struct{ in, address string }{
		{"root@unix(/run/mysqld/mysqld.sock)/", "unix:/run/mysqld/mysqld.sock"},
		{"root@unix(/run/mysqld/mysqld.sock)", "unix:/run/mysqld/mysqld.sock"},
		{"u:p@s/w:rd@tcp(127.0.0.1:3307)/", "tcp://127.0.0.1:3307"},
		{"u@tcp(db)/x", "tcp://db:3306"},
		{"u:hunter2@tcp(", ""},
		{"u:hunter2@tcp(a)/?tls=hunter2", ""},
	} {
		config, err := dataSource(tt.in)
		if err != nil {
			if tt.address != "" || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", tt.in, err)
			}
			continue
		}
		if got := serverAddress(config); got != tt.address || config.ReadTimeout == 0 {
			t.Errorf("%s: %s, %+v", tt.in, got, config.ReadTimeout)
		}
	}
}

// What can never be answered is not asked again and again.
func TestNever(t *testing.T) {
	for _, tt := range []struct {
		ask   hakaru.Ask
		found string
	}{
		{hakaru.Ask{Kind: "log", Asked: "x"}, "hakaru does not start it and does not see its output"},
		{hakaru.Ask{Kind: "sql", Argument: "select 1"}, "it is not known where to ask; under the service write sql: user:password@tcp(host:port)/"},
		{hakaru.Ask{Kind: "stats", Argument: "127.0.0.1:1"}, "which key of the answer is not said: write field"},
		{hakaru.Ask{Kind: "revision", Asked: "main"}, "the commit that runs is not known"},
		{hakaru.Ask{Kind: "file", Argument: "a.ini"}, "no such file was written"},
		{hakaru.Ask{Kind: "command", Argument: "true"}, "there is no command to run"},
		{hakaru.Ask{Kind: "command", Argument: "a | b"}, "the command line is more than one plain command"},
		{hakaru.Ask{Kind: "sqll"}, `there is no proof by "sqll"`},
	} {
		e := Seek(t.Context(), Subject{}, tt.ask, UntilYes)
		if e.Found != tt.found || e.Holds != not || !e.lasts {
			t.Errorf("%+v:\n%+v", tt.ask, e)
		}
	}
	e := Seek(t.Context(), Subject{Commit: "4f2a9c11d0"}, hakaru.Ask{Kind: "revision", Asked: "main"}, UntilYes)
	if e.Holds != yes || e.Found != "4f2a9c11d0" || e.Source != "checked out and built from git" {
		t.Errorf("%+v", e)
	}
}
