package proof

import (
	"net/netip"
	"strings"
	"testing"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

func TestMatch(t *testing.T) {
	worded := func(line string, title bool) func(hakaru.Ask) (string, hakaru.Held) {
		return func(a hakaru.Ask) (string, hakaru.Held) {
			found, ok, err := matchCmdline(strings.Fields(line), title, a)
			if err != nil {
				return err.Error(), hakaru.NotProved
			}
			return found, held(ok, a.Absent)
		}
	}
	cmd := func(line string) func(hakaru.Ask) (string, hakaru.Held) { return worded(line, false) }
	titled := func(line string) func(hakaru.Ask) (string, hakaru.Held) { return worded(line, true) }
	env := func(list ...string) func(hakaru.Ask) (string, hakaru.Held) {
		return func(a hakaru.Ask) (string, hakaru.Held) {
			found, ok, err := matchEnviron(list, a)
			if err != nil {
				return err.Error(), hakaru.NotProved
			}
			return found, held(ok, a.Absent)
		}
	}
	maps := func(a hakaru.Ask) (string, hakaru.Held) {
		found, ok := matchMaps("7f00-7f01 r-xp 0 08:01 12 /usr/lib/libjemalloc.so.2\n7f02-7f03 rw-p 0 00:00 0 [heap]\n", a)
		return found, held(ok, a.Absent)
	}
	http := func(body string) func(hakaru.Ask) (string, hakaru.Held) {
		return func(a hakaru.Ask) (string, hakaru.Held) { return matchHTTP(body, a) }
	}
	log := func(text string, cut bool) func(hakaru.Ask) (string, hakaru.Held) {
		return func(a hakaru.Ask) (string, hakaru.Held) { return matchLog(text, cut, a) }
	}
	server := func(found string) func(hakaru.Ask) (string, hakaru.Held) {
		return func(a hakaru.Ask) (string, hakaru.Held) { return "", matchServerValue(found, a) }
	}
	output := func(text string, cut bool) func(hakaru.Ask) (string, hakaru.Held) {
		return func(a hakaru.Ask) (string, hakaru.Held) { return matchOutput(text, cut, a) }
	}
	revisionIs := func(commit string) func(hakaru.Ask) (string, hakaru.Held) {
		return func(a hakaru.Ask) (string, hakaru.Held) { return "", matchRevision(commit, a) }
	}
	processes := func(s seen) func(hakaru.Ask) (string, hakaru.Held) {
		return func(a hakaru.Ask) (string, hakaru.Held) { return matchProcesses(s, a) }
	}
	threads := func(n ...int) func(hakaru.Ask) (string, hakaru.Held) {
		return func(a hakaru.Ask) (string, hakaru.Held) { return matchThreads(n, a) }
	}
	backlog := func(n ...uint32) func(hakaru.Ask) (string, hakaru.Held) {
		return func(a hakaru.Ask) (string, hakaru.Held) {
			var list []kernel.Listener
			for _, b := range n {
				list = append(list, kernel.Listener{Addr: netip.MustParseAddrPort("127.0.0.1:80"), Backlog: b})
			}
			return matchBacklog(list, 4096, a)
		}
	}
	const jsonBody = `{"workers": 4, "pool": {"size": "8", "on": true}, "list": [{"pid": 3}, 2], "none": null}`
	tests := []struct {
		name  string
		match func(hakaru.Ask) (string, hakaru.Held)
		ask   hakaru.Ask
		found string
		holds hakaru.Held
	}{
		{"flag and value", cmd("app --threads 2 -v"), hakaru.Ask{Argument: "--threads", Asked: "2"}, "--threads 2", yes},
		{"flag=value", cmd("app --threads=2"), hakaru.Ask{Argument: "--threads", Asked: "2"}, "--threads 2", yes},
		{"another value", cmd("app --threads=4"), hakaru.Ask{Argument: "--threads", Asked: "2"}, "--threads 4", no},
		{"short flag joined", cmd("app -w4"), hakaru.Ask{Argument: "-w", Asked: "4"}, "-w 4", yes},
		{"switch", cmd("app --quiet --port 1"), hakaru.Ask{Argument: "--quiet", Asked: "true"}, "--quiet --port", yes},
		{"flag not there", cmd("app --threadsafe 2"), hakaru.Ask{Argument: "--threads", Asked: "2"}, "--threads is not there", no},
		{"absent flag", cmd("app -v"), hakaru.Ask{Argument: "--threads", Absent: true}, "--threads is not there", yes},
		{"absent level within another word", cmd("python3 app --level"), hakaru.Ask{Equals: "3", Absent: true}, "python3 app --level", yes},
		{"absent level is there", cmd("python3 app --level=3"), hakaru.Ask{Setting: "app.level", Equals: "3", Absent: true}, "--level 3", no},
		{"absent level is that of another flag", cmd("python3 app --timeout 3"), hakaru.Ask{Setting: "level", Equals: "3", Absent: true}, "has the word 3, of another setting perhaps", not},
		{"absent flag by its text", cmd("app --fast"), hakaru.Ask{Setting: "mode", Equals: "--fast", Absent: true}, "--fast", no},
		{"flag of the setting's name", cmd("app --timeout 4 --max_workers=8"), hakaru.Ask{Setting: "max-workers", Asked: "4"}, "--max_workers 8", no},
		{"flag of the setting's name holds", cmd("app --workers 4"), hakaru.Ask{Setting: "app.workers", Asked: "4"}, "--workers 4", yes},
		{"switch of the setting's name", cmd("app --quiet"), hakaru.Ask{Setting: "quiet", Asked: "true"}, "--quiet", yes},
		{"equals is a whole word", cmd("python3 app"), hakaru.Ask{Equals: "3"}, "python3 app", no},
		{"equals are whole words", cmd("app --level 3 -v"), hakaru.Ask{Equals: "--level 3"}, "--level 3", yes},
		{"equals are no parts of words", cmd("app --level 32 -v"), hakaru.Ask{Equals: "--level 3"}, "app --level 32 -v", no},
		{"absent flag is there", cmd("app --threads 2"), hakaru.Ask{Argument: "--threads", Absent: true}, "--threads 2", no},
		{"level as a word", cmd("app serve 64"), hakaru.Ask{Asked: "64"}, "64", yes},
		{"level is no part of a word", cmd("app port 8064"), hakaru.Ask{Asked: "64"}, "app port 8064", no},
		{"contains", cmd("app --port 8064"), hakaru.Ask{Contains: "--port 80"}, "--port 80", yes},

		{"the last of two", cmd("app -t 4 -t 8"), hakaru.Ask{Argument: "-t", Asked: "8"}, "-t 8", yes},
		{"not the last of two", cmd("app -t 8 -v -t 4"), hakaru.Ask{Argument: "-t", Asked: "8"}, "has -t 8, and after it -t 4: which of them counts is not known", not},
		{"none of two", cmd("app -t 8 -t=4"), hakaru.Ask{Argument: "-t", Asked: "2"}, "-t 4", no},
		{"absent level is not the last", cmd("app -t 8 -t 4"), hakaru.Ask{Argument: "-t", Equals: "8", Absent: true}, "has -t 8, and after it -t 4: which of them counts is not known", not},
		{"another flag that begins as a short one", cmd("app -t 8 -threshold"), hakaru.Ask{Argument: "-t", Asked: "8"}, "-t 8", yes},
		{"flag in a title", titled("nginx: master process nginx -c /a.conf"), hakaru.Ask{Argument: "-c", Asked: "/a.conf"}, "-c /a.conf", yes},
		{"words in a title", titled("nginx: master process nginx -c /a.conf"), hakaru.Ask{Contains: "-c /a.conf"}, "-c /a.conf", yes},
		{"a number in a title", titled("uWSGI worker 4"), hakaru.Ask{Asked: "4"}, "has written a title over its words: uWSGI worker 4", not},
		{"not in a title", titled("nginx: worker process"), hakaru.Ask{Argument: "-c", Asked: "/a.conf"}, "has written a title over its words: nginx: worker process", not},

		{"variable of the setting's name", env("PATH=/bin", "MALLOC=je"), hakaru.Ask{Setting: "app.malloc", Asked: "je"}, "MALLOC=je", yes},
		{"variable named", env("X=4"), hakaru.Ask{Argument: "X", Asked: "4.0"}, "X=4", yes},
		{"variable with another value", env("X=5", "Y=4"), hakaru.Ask{Argument: "X", Asked: "4"}, "X=5", no},
		{"variable not set", env("Y=4"), hakaru.Ask{Argument: "X", Asked: "4"}, "not set", no},
		{"library in a list", env("LD_PRELOAD=/a/liba.so:/b/libje.so"), hakaru.Ask{Setting: "malloc", Asked: "libje.so"}, "LD_PRELOAD=/a/liba.so:/b/libje.so", yes},
		{"a digit is not found inside of values", env("PATH=/opt/4you"), hakaru.Ask{Setting: "n", Asked: "4"}, "in no variable", no},
		{"a number is of many variables", env("SHLVL=1"), hakaru.Ask{Setting: "n", Asked: "1"}, "has SHLVL=1, of another setting perhaps; {environ: NAME} says which variable it is", not},
		{"a number is in no variable", env("SHLVL=1"), hakaru.Ask{Setting: "n", Asked: "4"}, "in no variable", no},
		{"absent variable", env("PATH=/bin"), hakaru.Ask{Argument: "LD_PRELOAD", Absent: true}, "not set", yes},
		{"the mark is not looked at", env("HAKARU_MARK=7"), hakaru.Ask{Setting: "n", Asked: "7"}, "in no variable", no},

		{"mapped", maps, hakaru.Ask{Asked: "libjemalloc.so.2"}, "/usr/lib/libjemalloc.so.2", yes},
		{"mapped, link name", maps, hakaru.Ask{Asked: "libjemalloc.so"}, "/usr/lib/libjemalloc.so.2", yes},
		{"not mapped", maps, hakaru.Ask{Asked: "libtcmalloc"}, "not mapped", no},
		{"absent and not mapped", maps, hakaru.Ask{Contains: "libtcmalloc", Absent: true}, "not mapped", yes},
		{"absent and mapped", maps, hakaru.Ask{Contains: "libjemalloc", Absent: true}, "/usr/lib/libjemalloc.so.2", no},

		{"field", http(jsonBody), hakaru.Ask{Field: "workers", Asked: "4"}, "4", yes},
		{"field below", http(jsonBody), hakaru.Ask{Field: "pool.size", Asked: "8"}, "8", yes},
		{"switch words", http(jsonBody), hakaru.Ask{Field: "pool.on", Asked: "on"}, "true", yes},
		{"list", http(jsonBody), hakaru.Ask{Field: "list.0.pid", Equals: "3"}, "3", yes},
		{"length", http(jsonBody), hakaru.Ask{Field: "$.list.length", Asked: "3"}, "2", no},
		{"no such field", http(jsonBody), hakaru.Ask{Field: "pool.sise", Asked: "8"}, "the answer has no pool.sise", not},
		{"absent field", http(jsonBody), hakaru.Ask{Field: "limit", Absent: true}, "not there", yes},
		{"not JSON", http("<p>"), hakaru.Ask{Field: "a", Asked: "8"}, "the answer is not JSON: <p>", not},
		{"whole body", http("a\nthreads: 2\nb"), hakaru.Ask{Contains: "threads: 2"}, "threads: 2", yes},

		{"a level within a number", http("up 1234 s\nworkers 3"), hakaru.Ask{Asked: "4"}, "up 1234 s: within a longer word", not},
		{"a level within a number, and by itself", http("up 1234 s\nworkers: 4."), hakaru.Ask{Asked: "4"}, "workers: 4.", yes},
		{"a level within a number is not absent", http("up 1234 s"), hakaru.Ask{Equals: "4", Absent: true}, "up 1234 s: within a longer word", not},
		{"a text may be any part", http("up 1234 s"), hakaru.Ask{Contains: "p 12"}, "up 1234 s", yes},
		{"a level is nowhere", http("workers 3"), hakaru.Ask{Asked: "4"}, "workers 3", no},
		{"a level in the log is within a word", log("pid 8064\n", false), hakaru.Ask{Asked: "64"}, "pid 8064: within a longer word", not},

		{"log", log("start\nUsing worker: gthread\n", false), hakaru.Ask{Contains: "worker: gthread"}, "Using worker: gthread", yes},
		{"log lacks it", log("start\n", false), hakaru.Ask{Contains: "gthread"}, "not there", no},
		{"log lacks it where it was cut", log("start\n", true), hakaru.Ask{Contains: "gthread"}, "not in the part of the output that was kept", not},
		{"log pattern", log("spawned 3 workers", false), hakaru.Ask{Argument: `spawned (\d+)`, Asked: "4"}, "spawned 3", no},
		{"log pattern holds", log("spawned 3\nspawned 4", false), hakaru.Ask{Argument: `spawned (\d+)`, Asked: "4"}, "spawned 4", yes},
		{"bad pattern", log("", false), hakaru.Ask{Argument: `(`}, "pattern: error parsing regexp: missing closing ): `(`", not},

		{"log pattern is of lines", log("a\nready 3\nb", false), hakaru.Ask{Argument: `^ready (\d)$`, Asked: "3"}, "ready 3", yes},
		{"log pattern without a group", log("[pid: 7]", false), hakaru.Ask{Argument: `pid: \d`, Asked: "false"}, "pid: 7", yes},
		{"absent pattern is there", log("[pid: 7]", false), hakaru.Ask{Argument: `pid: (\d)`, Asked: "true", Absent: true}, "pid: 7", no},
		{"absent pattern is not there", log("start", false), hakaru.Ask{Argument: `pid: (\d)`, Asked: "true", Absent: true}, "not there", yes},
		{"absent pattern with a value", log("workers 2", false), hakaru.Ask{Argument: `workers (\d)`, Equals: "3", Absent: true}, "workers 2", yes},
		{"absent, and a part was cut", log("start", true), hakaru.Ask{Argument: `pid: \d`, Absent: true}, "not in the part of the output that was kept", not},
		{"there, and a part was cut", log("[pid: 7]", true), hakaru.Ask{Argument: `pid: \d`, Absent: true}, "pid: 7", no},
		{"log count", log("worker 1\nworker 2\nworker 2\n", false), hakaru.Ask{Argument: `worker (\d)`, Asked: "2", Count: true}, "2", yes},
		{"log count of whole matches", log("worker 1\nworker 2\nworker 2\n", false), hakaru.Ask{Argument: `worker \d`, Asked: "2", Offset: 1, Count: true}, "2", no},
		{"log count of nothing", log("", false), hakaru.Ask{Argument: `worker \d`, Asked: "0", Count: true}, "0", yes},
		{"log count of nothing, where some were asked for", log("", false), hakaru.Ask{Argument: `worker \d`, Asked: "4", Count: true}, "not there", not},
		{"log count of a word", log("", false), hakaru.Ask{Argument: `worker \d`, Asked: "auto", Count: true}, `0; "auto" is not a number`, not},
		{"log count, cut", log("worker 1\n", true), hakaru.Ask{Argument: `worker \d`, Asked: "1", Count: true}, "1 in the part of the output that was kept", not},
		{"log count, cut and too many", log("worker 1\nworker 2\n", true), hakaru.Ask{Argument: `worker \d`, Asked: "1", Count: true}, "2", no},

		{"server value", server("134217728"), hakaru.Ask{Asked: "128M"}, "", yes},
		{"server value of another size", server("134217728"), hakaru.Ask{Asked: "128k"}, "", no},
		{"server value with a fraction", server("1610612736"), hakaru.Ask{Asked: "1.5g"}, "", yes},
		{"server switch", server("1"), hakaru.Ask{Asked: "ON"}, "", yes},
		{"server text", server("ROW"), hakaru.Ask{Asked: "row"}, "", yes},
		{"server text that ends as a size", server("7"), hakaru.Ask{Asked: "M"}, "", not},
		{"server number", server("151"), hakaru.Ask{Asked: "500"}, "", no},
		{"server switch is the other way", server("OFF"), hakaru.Ask{Asked: "1"}, "", no},
		{"server has another word for a number", server("ALWAYS"), hakaru.Ask{Asked: "2"}, "", not},
		{"server has another word for a switch", server("ON"), hakaru.Ask{Asked: "2"}, "", not},
		{"server has a number for a word", server("1"), hakaru.Ask{Asked: "mysql-bin"}, "", not},
		{"server has a longer word", server("utf8mb3"), hakaru.Ask{Asked: "utf8"}, "", not},
		{"server has the whole list", server("index_merge=on,mrr=on"), hakaru.Ask{Asked: "mrr=on"}, "", not},
		{"server has another word of a choice", server("no-threads"), hakaru.Ask{Asked: "pool-of-threads", Exact: true}, "", no},
		{"server has another word, and another was to go", server("DEMAND"), hakaru.Ask{Equals: "2", Absent: true}, "", not},
		{"server has another number, and one was to go", server("3"), hakaru.Ask{Equals: "2", Absent: true}, "", yes},
		{"server value contains", server("A,B,C"), hakaru.Ask{Contains: "B"}, "", yes},
		{"server value does not contain", server("A,B,C"), hakaru.Ask{Contains: "D"}, "", no},

		{"output", output(" 4\n", false), hakaru.Ask{Asked: "4"}, "4", yes},
		{"output of more", output("size 4\n", false), hakaru.Ask{Asked: "4"}, "size 4", no},
		{"output contains", output("a\nsize 4\nb", false), hakaru.Ask{Contains: "size 4"}, "size 4", yes},
		{"output field", output(`{"size": 4}`, false), hakaru.Ask{Field: "size", Asked: "5"}, "4", no},
		{"output is not JSON", output(`4`, false), hakaru.Ask{Field: "size", Asked: "5"}, "the answer has no size", not},
		{"no output", output("", false), hakaru.Ask{Asked: "5"}, "nothing was printed", no},
		{"output cut", output("a", true), hakaru.Ask{Contains: "b"}, "a (more was printed than is read)", not},
		{"absent of output", output("a", false), hakaru.Ask{Contains: "b", Absent: true}, "a", yes},

		{"branch", revisionIs("4f2a9c11d0"), hakaru.Ask{Asked: "main"}, "", yes},
		{"commit", revisionIs("4f2a9c11d0"), hakaru.Ask{Asked: "4F2A9C1"}, "", yes},
		{"another commit", revisionIs("4f2a9c11d0"), hakaru.Ask{Asked: "5f2a9c1"}, "", no},

		{"processes", processes(seen{own: 5, stay: 5}), hakaru.Ask{Asked: "4", Offset: 1}, "5", yes},
		{"too few processes", processes(seen{own: 3, stay: 3}), hakaru.Ask{Asked: "4"}, "3", no},
		{"too many processes", processes(seen{own: 5, stay: 5}), hakaru.Ask{Asked: "4"}, "5", no},
		{"processes of a word", processes(seen{own: 5, stay: 5}), hakaru.Ask{Asked: "auto"}, `5; "auto" is not a number`, not},
		{"processes and helpers", processes(seen{own: 4, stay: 4, helpers: 3}), hakaru.Ask{Asked: "4"}, "4, and 3 of other programs", yes},
		{"processes or helpers", processes(seen{own: 1, stay: 1, helpers: 4}), hakaru.Ask{Asked: "5"}, "1, and 4 of other programs; whether those count is not known", not},
		{"too few processes, helpers and all", processes(seen{own: 1, stay: 1, helpers: 2}), hakaru.Ask{Asked: "4"}, "1, and 2 of other programs", no},
		{"too many processes, and helpers", processes(seen{own: 5, stay: 5, helpers: 2}), hakaru.Ask{Asked: "4"}, "5, and 2 of other programs", no},
		{"processes that come and go", processes(seen{own: 7, stay: 3}), hakaru.Ask{Asked: "4"}, "7; 3 of them stay, the others come and go", not},
		{"too many processes that may not be looked at", processes(seen{own: 5, stay: 5, blind: true}), hakaru.Ask{Asked: "4"}, "5; what they run may not be looked at", not},
		{"as many that may not be looked at", processes(seen{own: 5, stay: 5, blind: true}), hakaru.Ask{Asked: "5"}, "5", yes},

		{"threads", threads(1, 4, 4), hakaru.Ask{Asked: "4"}, "4", yes},
		{"threads and a main one", threads(5), hakaru.Ask{Asked: "4", Offset: 1}, "5", yes},
		{"too few threads", threads(1), hakaru.Ask{Asked: "4"}, "1", no},
		{"more threads", threads(9), hakaru.Ask{Asked: "4"}, "9; threads of libraries and of the runtime are among them", not},
		{"threads of a word", threads(9), hakaru.Ask{Asked: "many"}, `9; "many" is not a number`, not},

		{"backlog", backlog(64, 64), hakaru.Ask{Asked: "64"}, "64 on 127.0.0.1:80", yes},
		{"backlog cut by somaxconn", backlog(4096), hakaru.Ask{Asked: "9000"}, "4096 on 127.0.0.1:80, cut by net.core.somaxconn", no},
		{"backlog as somaxconn is", backlog(4096), hakaru.Ask{Asked: "4096"}, "4096 on 127.0.0.1:80", yes},
		{"less than somaxconn", backlog(100), hakaru.Ask{Asked: "9000"}, "100 on 127.0.0.1:80", no},
		{"one of two cut", backlog(100, 4096), hakaru.Ask{Asked: "9000"}, "100 on 127.0.0.1:80, 4096 on 127.0.0.1:80, cut by net.core.somaxconn", no},
		{"one of two as asked", backlog(511, 1024), hakaru.Ask{Asked: "1024"}, "1024 on 127.0.0.1:80, 511 on 127.0.0.1:80; which of them it is about is not known", not},
		{"no listener", backlog(), hakaru.Ask{Asked: "9000"}, "it does not listen", not},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, holds := tt.match(tt.ask)
			if found != tt.found || holds != tt.holds {
				t.Errorf("%q, %v; want %q, %v", found, holds, tt.found, tt.holds)
			}
		})
	}
}
