package kind

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func kindFiles(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out["kinds/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// A kind that is planned and has a file would be "not built yet" for ever.
func TestTwice(t *testing.T) {
	const file = "name: redis\nbuilt: true\nprograms: [redis-server]\n"
	if _, err := load(kindFiles(map[string]string{"redis.yaml": file, "planned.yaml": "- {name: redis, programs: [redis-server]}\n"})); err == nil || !strings.Contains(err.Error(), "taken out of planned.yaml") {
		t.Errorf("a kind that is there twice: %v", err)
	}
	if _, err := load(kindFiles(map[string]string{"redis.yaml": file, "planned.yaml": "- {name: postfix}\n"})); err != nil {
		t.Error(err)
	}
}

// What is read first of a kind file is what the whole file says, however it is
// laid out.
func TestHeads(t *testing.T) {
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, layout := range []string{"programs:\n  - a\n  # or\n  - b c\n", "programs:\n- a\n- b c\n", "programs: [a,\n  b c]\n", "programs: [\n  a, b c\n]\n"} {
		c, err := load(kindFiles(map[string]string{"x.yaml": "# first\nname: x\nsummary: y\n" + layout + "built: true\nstop: {signal: TERM}\n"}))
		if err != nil {
			t.Fatalf("%s: %v", layout, err)
		}
		if h := c.heads[0]; h.Name != "x" || !h.Built || !slices.Equal(h.Programs, []string{"a", "b c"}) {
			t.Errorf("%s: read %+v", layout, h)
		}
	}
	for _, h := range c.heads {
		k, err := c.Read(h.Name)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != k.Name || h.Built != k.Built || k.Like == "" && !slices.Equal(h.Programs, k.Programs) {
			t.Errorf("%s: its head is read as %+v", k.Name, h)
		}
	}
}

// A kind like another has everything that it writes itself.
func TestInherit(t *testing.T) {
	c, err := load(kindFiles(map[string]string{
		"a.yaml": "name: a\nbuilt: true\nsummary: A\nprograms: [a]\nrun: a {settings}\nrun_unless: {x: a}\nready: {connect: '{addr}'}\nstop: {signal: TERM}\nedit: {flag: '--{name}={value}'}\n" +
			"listen: {port: port, default: '127.0.0.1:1'}\nsql: {tcp: '{addr}'}\nloud: true\nproofs: [{cmdline: true}]\nprivate: [{name: pid}]\nbackground: [x]\n" +
			"settings: [{name: port, type: whole}, {name: pid, type: text}, {name: x, type: bool}]\nsigns: [{line: one, hint: h}]\n",
		"b.yaml": "name: b\nbuilt: true\nlike: a\nprograms: [b]\nrun: b\nready: {log: up}\nstop: {signal: INT, grace: 1s}\nedit: {flag: '-{name} {value}'}\nlisten: {port: port, default: '127.0.0.1:2'}\n" +
			"proofs: []\nprivate: []\nignores: true\nsettings: [{name: port, type: count}]\nsigns: [{line: two, hint: h}]\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Read("a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Read("b")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]any{"Name": "b", "Like": "a", "Programs": []string{"b"}, "Run": "b", "RunUnless": map[string]string(nil), "Ready": Ready{Log: "up"},
		"Stop": Stop{"INT", "1s"}, "Edit": Edit{Flag: "-{name} {value}"}, "Listen": Listen{Port: "port", Default: "127.0.0.1:2"}, "Proofs": []Proof{}, "Private": []Private{}, "Ignores": true}
	from, got := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range from.NumField() {
		field := from.Type().Field(i)
		if !field.IsExported() || field.Name == "Settings" || field.Name == "Signs" {
			continue
		}
		want, written := own[field.Name]
		if !written {
			want = from.Field(i).Interface()
		}
		if !reflect.DeepEqual(got.Field(i).Interface(), want) {
			t.Errorf("%s is %v, want %v", field.Name, got.Field(i), want)
		}
	}
	if port, _ := b.Setting("port"); port.Type != Count || len(b.Settings) != 3 || len(b.Signs) != 2 || b.Signs[0].Line != "two" {
		t.Errorf("settings %+v, signs %+v", b.Settings, b.Signs)
	}
}

// A flag that switches off is never the flag of what it switches off.
func TestOpposites(t *testing.T) {
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Names() {
		k, err := c.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range k.names {
			for _, no := range []string{"no-", "disable-", "without-", "skip-"} {
				if plain, found := strings.CutPrefix(s.Flag, no); found && (plain == s.Name || plain == s.File) {
					t.Errorf("%s: --%s is taken for the flag of %s", name, s.Flag, s.Name)
				}
			}
		}
	}
}

// A proof by a command is asked where the service is, and not where its address
// has no such part.
func TestCommandFor(t *testing.T) {
	const tcp, unix = "redis-cli -h {host} -p {port} CONFIG GET {name}", "redis-cli -s {path} CONFIG GET {name}"
	for _, c := range []struct{ command, address, want string }{
		{tcp, "127.0.0.1:6379", "redis-cli -h 127.0.0.1 -p 6379 CONFIG GET maxmemory"},
		{tcp, "[::1]:6379", "redis-cli -h ::1 -p 6379 CONFIG GET maxmemory"},
		{tcp, "{redis}", "redis-cli -h {redis.host} -p {redis.port} CONFIG GET maxmemory"},
		{tcp, "127.0.0.1:{redis.port}", "redis-cli -h 127.0.0.1 -p {redis.port} CONFIG GET maxmemory"},
		{tcp, "unix:/run/r", ""}, {tcp, "", ""}, {unix, "127.0.0.1:1", ""},
		{unix, "unix:/run/r", "redis-cli -s /run/r CONFIG GET maxmemory"},
		{"status {addr} {pid}", "127.0.0.1:1", "status 127.0.0.1:1 {pid}"},
	} {
		if got, known := commandFor(c.command, c.address, "maxmemory"); got != c.want || known != (c.want != "") {
			t.Errorf("%s at %q: %q, %v", c.command, c.address, got, known)
		}
	}
}
