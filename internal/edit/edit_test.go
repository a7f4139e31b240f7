package edit_test

import (
	"strings"
	"testing"

	"hakaru/internal/edit"
)

// put is an edit of one name (with all others, parted by |), or with no value
// its removal.
func put(names string, value ...string) edit.Edit {
	e := edit.Edit{Names: strings.Split(names, "|")}
	if len(value) > 0 {
		e.Value = &value[0]
	}
	return e
}

func within(context string, e edit.Edit) edit.Edit {
	e.Context = context
	return e
}

var (
	ini    = edit.File{Style: edit.INI, Sections: []string{"serve"}}
	uwsgi  = edit.File{Style: edit.UWSGI, Sections: []string{"uwsgi"}}
	mycnf  = edit.File{Style: edit.MyCnf, Sections: []string{"mysqld", "server", "mariadb", "mariadbd"}}
	nginx  = edit.File{Style: edit.Nginx}
	assign = edit.File{Style: edit.Assign}
)

// change is one row of a table: a text, what is put in, and what comes out.
type change struct {
	content string
	edits   []edit.Edit
	want    string
}

// check runs a table. Whatever is put in once is the same put in twice.
func check(t *testing.T, f edit.File, table map[string]change) {
	t.Helper()
	for name, c := range table {
		t.Run(name, func(t *testing.T) {
			got, err := f.Put(c.content, c.edits)
			if err != nil || got != c.want {
				t.Fatalf("got  %q, %v\nwant %q", got, err, c.want)
			}
			again, err := f.Put(got, c.edits)
			if err != nil || again != got {
				t.Errorf("twice %q, %v\nonce  %q", again, err, got)
			}
		})
	}
}

// values runs a table of texts and what they say about x.
func values(t *testing.T, f edit.File, table map[string]struct {
	content, want string
	found         bool
}) {
	t.Helper()
	for name, c := range table {
		t.Run(name, func(t *testing.T) {
			if got, found := f.Value(c.content, []string{"x"}); got != c.want || found != c.found {
				t.Errorf("%q: x is %q, %v, want %q, %v", c.content, got, found, c.want, c.found)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		file    edit.File
		content string
		edit    edit.Edit
		want    string // in the message
	}{
		"two lines":               {ini, "", put("log", "a\nprocesses = 9"), "more than one line"},
		"zero byte":               {mycnf, "", put("log", "a\x00"), "more than one line"},
		"another key in the name": {uwsgi, "", put("a=b", "1"), "no name of a setting"},
		"a section for a name":    {ini, "", put("[x]", "1"), "no name of a setting"},
		"an include for a name":   {mycnf, "", put("!include x", "1"), "no name of a setting"},
		"short flags only":        {ini, "", put("-w", "1"), "no name that can stand in a config file"},
		"no name":                 {ini, "", edit.Edit{}, "no name that can stand in a config file"},
		"no style":                {edit.File{}, "", put("a", "1"), `style ""`},
		"option without a group":  {mycnf, "x=1\n[mysqld]\n", put("y", "1"), "line 1: a setting stands before the first group"},
		"byte order mark":         {mycnf, "\ufeff[mysqld]\n", put("y", "1"), "line 1: a byte order mark"},
		"group that does not end": {mycnf, "[mysqld]\n[x\n", put("y", "1"), "line 2: the name of the group"},
		"no group known":          {edit.File{Style: edit.MyCnf}, "", put("y", "1"), "no group is known"},
		"lua":                     {nginx, "http {\n  content_by_lua_block { if x { } }\n}\n", put("y", "1"), "line 2: content_by_lua_block holds Lua"},
		"block that does not end": {nginx, "events {}\nhttp {\n  gzip on;\n", put("y", "1"), "line 2: the block http does not end"},
		"brace too many":          {nginx, "events {}\n}\n", put("y", "1"), `line 2: unexpected "}"`},
		"no semicolon":            {nginx, "\nuser www-data\n", put("y", "1"), `line 2: user ends without ";"`},
		"quote that does not end": {nginx, "user \"a;\n", put("y", "1"), "line 1: unexpected end of file"},
		"glued to a quote":        {nginx, "user \"a\"b;\n", put("y", "1"), "line 1: unexpected 'b' behind a quoted word"},
		"a second directive":      {nginx, "", put("y", "1; user root"), "is not one directive"},
		"a block as a value":      {nginx, "", put("y", "1 {"), "is not one directive"},
		"a comment as a value":    {nginx, "", put("y", "1 # 2"), "is not one directive"},
		"an open quote":           {nginx, "", put("y", `"1`), "is not one directive"},
		"an escaped semicolon":    {nginx, "", put("y", `1\`), "is not one directive"},
		"two words for a name":    {nginx, "", put("y z", "1"), "is not one directive"},
		"no such block":           {nginx, "http {}\n", within("http.server", put("listen", "80")), "there is no block http > server"},
		"over several lines":      {assign, "a = 1\nx = [\n 1]\n", put("x", "2"), "line 2: the assignment takes 2 lines"},
		"by a backslash":          {assign, "x = 1 + \\\n 2\n", put("x"), "line 1: the assignment takes 2 lines"},
		"used elsewhere":          {assign, "x = 1\ny = x\n", put("x"), "line 2 has it otherwise"},
		"under a condition":       {assign, "if a:\n    x = 1\n", put("x"), "line 2 has it otherwise"},
		"string that goes on":     {assign, "y = 'a\n", put("x", "1"), "line 1: the string does not end"},
		"bracket that goes on":    {assign, "\ny = (\n", put("x", "1"), "line 2: a bracket is not closed"},
		"no variable":             {assign, "", put("class", "1"), "no name of a variable"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.file.Put(c.content, []edit.Edit{c.edit})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, %v, want an error with %q", got, err, c.want)
			}
		})
	}
}
