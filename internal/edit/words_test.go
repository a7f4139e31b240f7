package edit_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hakaru/internal/edit"
)

var (
	long     = edit.Words{Flag: "--{name}={value}"}
	switched = edit.Words{Flag: "--{name}={value}", True: "--{name}", Switches: []string{"preload"}}
	parted   = edit.Words{Flag: "--{name} {value}", True: "--{name}"}
	single   = edit.Words{Flag: "-{name} {value}"}
	server   = edit.Words{Flag: "--{name}={value}", Style: edit.MyCnf}
	wrapped  = edit.Words{Flag: "--{name}={value}", Programs: []string{"memcached", "python3 -m gunicorn"}}
)

func TestPutWords(t *testing.T) {
	for _, c := range []struct {
		words edit.Words
		line  string
		edits []edit.Edit
		want  string
	}{
		{long, "hakaru serve", []edit.Edit{put("threads", "2")}, "hakaru serve --threads=2"},
		{long, "hakaru serve --threads 1 --log off", []edit.Edit{put("threads", "2")}, "hakaru serve --threads=2 --log off"},
		{long, "hakaru serve --threads=1 --log=off --threads=3", []edit.Edit{put("threads", "2")}, "hakaru serve --threads=2 --log=off"},
		{long, "hakaru serve --log=off --threads=1", []edit.Edit{put("log")}, "hakaru serve --threads=1"},
		{long, "hakaru serve --threads", []edit.Edit{put("threads", "2"), put("log", "off")}, "hakaru serve --threads=2 --log=off"},
		{long, "hakaru serve --thread=1", []edit.Edit{put("threads", "2")}, "hakaru serve --thread=1 --threads=2"},
		{long, "hakaru serve", []edit.Edit{put("log", "false")}, "hakaru serve --log=false"},
		{long, "hakaru serve", []edit.Edit{put("a", "1"), put("a", "2")}, "hakaru serve --a=2"},

		{switched, "gunicorn -b x -w 4 app:app", []edit.Edit{put("workers|-w", "2")}, "gunicorn -b x --workers=2 app:app"},
		{switched, "gunicorn -w4 --workers 3 app:app", []edit.Edit{put("workers|-w", "2")}, "gunicorn --workers=2 app:app"},
		{switched, "gunicorn app:app", []edit.Edit{put("-w|workers", "2")}, "gunicorn app:app -w 2"},
		{switched, "gunicorn --preload app:app", []edit.Edit{put("preload", "true")}, "gunicorn --preload app:app"},
		{switched, "gunicorn --preload app:app", []edit.Edit{put("preload", "false")}, "gunicorn app:app"},
		{switched, "gunicorn --preload app:app", []edit.Edit{put("preload")}, "gunicorn app:app"},
		{switched, "gunicorn app:app", []edit.Edit{put("preload", "false")}, "gunicorn app:app"},
		{switched, "gunicorn -R app:app", []edit.Edit{put("reload|-R", "true")}, "gunicorn --reload app:app"},
		{switched, "gunicorn --access-logfile - app:app", []edit.Edit{put("access-logfile", "/a b")}, "gunicorn --access-logfile=/a b app:app"},
		{switched, "gunicorn -w 4 -- app:app --workers=1", []edit.Edit{put("workers|-w", "2"), put("threads", "3")}, "gunicorn --workers=2 --threads=3 -- app:app --workers=1"},

		{parted, "puma -t 1:2 config.ru", []edit.Edit{put("threads|-t", "5:5")}, "puma --threads 5:5 config.ru"},
		{parted, "puma --threads=1 config.ru", []edit.Edit{put("threads|-t", "5:5"), put("quiet", "true")}, "puma --threads 5:5 config.ru --quiet"},
		{parted, "memcached -vv -p 1", []edit.Edit{put("-v", "true")}, "memcached -vv -p 1 -v"},
		{parted, "memcached -v -p 1", []edit.Edit{put("-v", "false")}, "memcached -p 1"},
		{parted, "memcached -m64 -p 1", []edit.Edit{put("-m|memory-limit", "128")}, "memcached -m 128 -p 1"},

		{wrapped, "taskset -c 0 /usr/bin/memcached -m 64", []edit.Edit{put("conn-limit|-c", "100")}, "taskset -c 0 /usr/bin/memcached -m 64 --conn-limit=100"},
		{wrapped, "taskset -c 0 memcached -c 64", []edit.Edit{put("conn-limit|-c", "100")}, "taskset -c 0 memcached --conn-limit=100"},
		{wrapped, "nice -n 5 -- python3 -m gunicorn app:app", []edit.Edit{put("x", "1"), put("m|-m", "2")}, "nice -n 5 -- python3 -m gunicorn app:app --x=1 --m=2"},
		{wrapped, "memcached -c 64", []edit.Edit{put("conn-limit|-c")}, "memcached"},
		{wrapped, "./my-own -c 64", []edit.Edit{put("conn-limit|-c", "100")}, "./my-own --conn-limit=100"},

		{single, "java -threads 2 x", []edit.Edit{put("threads", "3")}, "java -threads 3 x"},

		{server, "mariadbd --innodb_buffer_pool_size=1G", []edit.Edit{put("innodb-buffer-pool-size", "2G")}, "mariadbd --innodb-buffer-pool-size=2G"},
		{server, "mariadbd --skip-log-bin --port 1", []edit.Edit{put("log_bin", "x")}, "mariadbd --log_bin=x --port 1"},
	} {
		words := strings.Fields(c.line)
		got, err := c.words.Put(words, c.edits)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s:\ngot  %q, %v\nwant %q", c.line, got, err, c.want)
		}
		if strings.Join(words, " ") != c.line {
			t.Errorf("%s: the words given were changed to %q", c.line, words)
		}
		again, err := c.words.Put(got, c.edits)
		if err != nil || strings.Join(again, " ") != c.want {
			t.Errorf("%s: twice %q, %v", c.line, again, err)
		}
	}
	for _, name := range []string{"", "-", "--", "a=b", "a b"} {
		if got, err := long.Put(nil, []edit.Edit{put(name, "1")}); err == nil {
			t.Errorf("the name %q made %q", name, got)
		}
	}
	if got, err := (edit.Words{}).Put(nil, []edit.Edit{put("a", "1")}); err == nil {
		t.Errorf("a program without flags got %q", got)
	}
}

func TestValueWords(t *testing.T) {
	for _, c := range []struct {
		words       edit.Words
		line, names string
		want        string
		found       bool
	}{
		{long, "serve --threads 2 --threads=3", "threads", "3", true},
		{long, "serve --log --threads=3", "log", "true", true},
		{long, "serve --log", "threads", "", false},
		{long, "serve -- --log=a", "log", "", false},
		{long, "serve --log=", "log", "", true},
		{switched, "gunicorn --workers 2 -w3 a", "workers|-w", "3", true},
		{switched, "gunicorn -w=4", "-w", "=4", true},
		{switched, "gunicorn --preload app", "preload", "true", true},
		{switched, "gunicorn --log-file - app", "log-file", "-", true},
		{switched, "gunicorn --workers -k x", "workers", "true", true},
		{wrapped, "taskset -c 0 memcached", "conn-limit|-c", "", false},
		{single, "java -threads=2", "threads", "2", true},
		{single, "java --threads=2", "threads", "2", true},
		{server, "mariadbd --skip-x_y", "x-y", "0", true},
		{server, "mariadbd --loose-x_y=3", "x-y", "3", true},
		{server, "mariadbd --x_y", "x-y", "true", true},
	} {
		if got, found := c.words.Value(strings.Fields(c.line), strings.Split(c.names, "|")); got != c.want || found != c.found {
			t.Errorf("%s: %s is %q, %v, want %q, %v", c.line, c.names, got, found, c.want, c.found)
		}
	}
}

// Whatever stands there: what is put in is read back, twice is once, null leaves
// none, and all other words stay in order.
func TestWordsHold(t *testing.T) {
	word := rapid.SampledFrom([]string{"gunicorn", "--workers=1", "--workers", "-w", "-w2", "3", "--", "-", "--preload", "app:app", "-k", "--x=1"})
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(word, 0, 8).Draw(t, "words")
		w := rapid.SampledFrom([]edit.Words{long, switched, parted}).Draw(t, "form")
		value := rapid.StringMatching(`[a-z0-9:/=. ]{1,8}`).Draw(t, "value")
		names := rapid.SampledFrom([]string{"workers|-w", "-w|workers"}).Draw(t, "names")
		edited, err := w.Put(words, []edit.Edit{put(names, value)})
		if err != nil {
			t.Fatal(err)
		}
		if got, found := w.Value(edited, strings.Split(names, "|")); !found || got != value {
			t.Fatalf("put %q into %q, got %q, read back %q", value, words, edited, got)
		}
		if again, _ := w.Put(edited, []edit.Edit{put(names, value)}); strings.Join(again, "\n") != strings.Join(edited, "\n") {
			t.Fatalf("once %q, twice %q", edited, again)
		}
		gone, err := w.Put(edited, []edit.Edit{put(names)})
		if err != nil {
			t.Fatal(err)
		}
		if got, found := w.Value(gone, strings.Split(names, "|")); found {
			t.Fatalf("null left %q in %q", got, gone)
		}
	})
}
