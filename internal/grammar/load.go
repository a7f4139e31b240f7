package grammar

import (
	"fmt"
	"reflect"
	"slices"

	"hakaru/internal/hint"
	"hakaru/internal/mistake"
	"hakaru/internal/yamltree"
)

// Load is {http: …} or {PROGRAM: …}.
type Load struct {
	HTTP    *HTTP
	Program Text     // name of a load program
	Options Settings // of it, as they were written; a header is "headers.NAME"
}

// AB is load by ApacheBench.
type AB struct {
	URL         Text       `json:"url,omitempty" jsonschema:"what is asked for, http://HOST:PORT/PATH"`
	Connections Text       `json:"connections,omitempty" jsonschema:"requests at once (ab -c); 64 where it is not given"`
	Requests    Text       `json:"requests,omitempty" jsonschema:"end after so many requests (ab -n) instead of after duration"`
	Duration    Text       `json:"duration,omitempty" jsonschema:"the measured run in whole seconds (ab -t), 10s where it is not given; with requests: how long they may take, 60s where it is not given"`
	WarmUp      Text       `json:"warm_up,omitempty" jsonschema:"whole seconds for which ab is run before, its figures dropped; 1s where it is not given"`
	KeepAlive   Text       `json:"keep_alive,omitempty" jsonschema:"true: connections are kept (ab -k); false where it is not given, as ab has it"`
	Timeout     Text       `json:"timeout,omitempty" jsonschema:"of one answer in whole seconds (ab -s); 30s where it is not given, as ab has it"`
	AnyLength   Text       `json:"any_length,omitempty" jsonschema:"true: answers may differ in length (ab -l); otherwise those unlike the first are wrong"`
	Method      Text       `json:"method,omitempty" jsonschema:"GET where it is not given"`
	Headers     Dict[Text] `json:"headers,omitempty" jsonschema:"request headers"`
	Body        Text       `json:"body,omitempty" jsonschema:"request body"`
	Args        Text       `json:"args,omitempty" jsonschema:"further words of its command line, as they are"`
	Program     Text       `json:"program,omitempty" jsonschema:"another binary; ab where it is not given"`
}

// Wrk is load by wrk.
type Wrk struct {
	URL         Text       `json:"url,omitempty" jsonschema:"what is asked for, http://HOST:PORT/PATH"`
	Connections Text       `json:"connections,omitempty" jsonschema:"requests at once (wrk -c); 64 where it is not given"`
	Threads     Text       `json:"threads,omitempty" jsonschema:"threads of wrk (wrk -t); 2 where it is not given, as wrk has it"`
	Duration    Text       `json:"duration,omitempty" jsonschema:"the measured run in whole seconds (wrk -d); 10s where it is not given"`
	WarmUp      Text       `json:"warm_up,omitempty" jsonschema:"whole seconds for which wrk is run before, its figures dropped; 1s where it is not given"`
	Timeout     Text       `json:"timeout,omitempty" jsonschema:"of one answer in whole seconds (wrk --timeout); 2s where it is not given, as wrk has it"`
	Method      Text       `json:"method,omitempty" jsonschema:"GET where it is not given"`
	Headers     Dict[Text] `json:"headers,omitempty" jsonschema:"request headers"`
	Body        Text       `json:"body,omitempty" jsonschema:"request body"`
	Args        Text       `json:"args,omitempty" jsonschema:"further words of its command line, as they are"`
	Program     Text       `json:"program,omitempty" jsonschema:"another binary; wrk where it is not given"`
}

// Command is load by a program of one's own.
type Command struct {
	Run        Text `json:"run,omitempty" jsonschema:"the command, split into words as a shell would, without a shell"`
	Score      Text `json:"score,omitempty" jsonschema:"pattern (RE2) whose group is the score in its output; more is better, and it is the goal where none is given"`
	Good       Text `json:"good,omitempty" jsonschema:"pattern whose group is the number of good answers"`
	Bad        Text `json:"bad,omitempty" jsonschema:"pattern whose group is the number of bad ones"`
	Throughput Text `json:"throughput,omitempty" jsonschema:"pattern whose group is the good answers per second"`
	Duration   Text `json:"duration,omitempty" jsonschema:"how long it may take; 60s where it is not given"`
	WarmUp     Text `json:"warm_up,omitempty" jsonschema:"time for which it is run before, then ended, its figures dropped; none where it is not given"`
}

// known are the load programs that hakaru can run, each with its keys.
func known() map[string]reflect.Type {
	return map[string]reflect.Type{
		"ab": reflect.TypeFor[AB](), "wrk": reflect.TypeFor[Wrk](), "command": reflect.TypeFor[Command](),
	}
}

// later are those that the grammar knows by name.
func later() []string {
	return []string{"hey", "memtier", "mysqlslap", "oha", "pgbench", "replay", "smtp-source", "sysbench", "vegeta", "wrk2"}
}

// programs are all load programs that the grammar knows.
func programs() []string { return append([]string{"ab", "command", "wrk"}, later()...) }

// Runs reports whether hakaru can run the load program.
func Runs(program string) bool { return known()[program] != nil }

func (l *Load) Decode(d *Decoder, n *yamltree.Node, path string) {
	if n.Kind != yamltree.Map {
		d.wrongKind(n, path, "a map, such as {http: {url: …}}")
		return
	}
	if n.Get("url") != nil && n.Get("http") == nil {
		d.Mistake(n.Entries[0].At, "unknown-load", "load does not say what sends it", "write it under http: load: {http: {url: …, connections: …}}")
		l.HTTP = &HTTP{}
		d.Decode(n, l.HTTP, join(path, "http"))
		return
	}
	for i, e := range n.Entries {
		inner := join(path, e.Key)
		d.Places[inner] = e.At
		switch {
		case i > 0 && (l.HTTP != nil || l.Program.Set):
			d.Mistake(e.At, "several-loads", fmt.Sprintf("load has %s beside %s: one load is sent", e.Key, n.Entries[0].Key), "remove one of them")
		case e.Key == "http":
			l.HTTP = &HTTP{}
			d.Decode(e.Value, l.HTTP, inner)
		case slices.Contains(programs(), e.Key):
			l.Program = written(e.Key, e.At)
			l.options(d, e, inner)
		default:
			d.Mistake(e.At, "unknown-load", fmt.Sprintf("unknown load %q", e.Key), hint.Name(e.Key, append([]string{"http"}, programs()...)))
			l.Program = written(e.Key, e.At) // so that it is not said to be missing as well
		}
	}
}

// options reads what is under the name of a program: the keys it has, or, where
// hakaru does not run it yet, whatever is there. A single text is the command of
// a program of one's own.
func (l *Load) options(d *Decoder, e yamltree.Entry, path string) {
	shape := known()[e.Key]
	_, command := fieldNamed(shape, "run")
	switch {
	case e.Value.Kind == yamltree.Scalar && (shape == nil || command):
		l.Options = Settings{{Name: "run", Value: &e.Value.Text, NameAt: e.At, At: e.Value.At}}
	case shape == nil:
		l.Options.Decode(d, e.Value, path)
	default:
		into := reflect.New(shape)
		d.Decode(e.Value, into.Interface(), path)
		l.Options = flat(into.Elem(), func(key string) mistake.Place { return d.Places[join(path, key)] })
	}
}

func fieldNamed(t reflect.Type, name string) (reflect.StructField, bool) {
	if t == nil {
		return reflect.StructField{}, false
	}
	for i := range t.NumField() {
		if f := t.Field(i); fieldName(f) == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// flat lists what was written into a struct of texts.
func flat(v reflect.Value, at func(key string) mistake.Place) Settings {
	var list Settings
	for i := range v.NumField() {
		name := fieldName(v.Type().Field(i))
		switch field := v.Field(i).Addr().Interface().(type) {
		case *Text:
			if field.Set {
				list = append(list, Setting{Name: name, Value: &field.Value, NameAt: at(name), At: field.At})
			}
		case *Dict[Text]:
			for i, key := range field.Keys {
				list = append(list, Setting{Name: name + "." + key, Value: &field.Values[i].Value, NameAt: field.Places[i], At: field.Values[i].At})
			}
		}
	}
	return list
}
