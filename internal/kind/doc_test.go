package kind

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// docs/kinds.md names every key that a kind file may have.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []any{Kind{}, Ready{}, Stop{}, Edit{}, Listen{}, SQL{}, Private{}, Sign{}, Setting{}, Proof{}} {
		for f := range reflect.TypeOf(of).Fields() {
			if key := f.Tag.Get("yaml"); key != "" && !strings.Contains(string(text), "`"+key+"`") && !strings.Contains(string(text), "`"+key+":") {
				t.Errorf("docs/kinds.md does not name %s of %T", key, of)
			}
		}
	}
}

// The example of docs/kinds.md is a kind that can be read.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	blocks := strings.Split(string(text), "```yaml\n")
	for _, block := range blocks[1:] {
		file.WriteString(block[:strings.Index(block, "```")])
	}
	var k Kind
	if err := decode([]byte(file.String()), &k); err != nil {
		t.Fatalf("%v\n%s", err, file.String())
	}
	if err := k.index(files); err != nil {
		t.Fatal(err)
	}
	if got := k.Address(strings.Fields("memcached -p 1 --listen=127.0.0.2"), ""); got != "127.0.0.2:11211" {
		t.Errorf("listens on %s: -p is no name that the example gives", got)
	}
	if _, known := k.Setting("threads"); !known || len(k.Signs) != 2 || len(k.Settings) != 3 {
		t.Errorf("read %+v", k)
	}
}
