package proof

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// A look under load is not repeated but for a no, and then not for long; a
// command costs more than a look.
func TestSeekAgain(t *testing.T) {
	workers := hakaru.Ask{Kind: "log", Argument: `workers (\d)`, Asked: "2"}
	for name, tt := range map[string]struct {
		ask         hakaru.Ask
		outputs     []string // one after the other, the last for ever
		again       Again
		least, most int // how often it was asked
		holds       hakaru.Held
	}{
		"once":                     {workers, []string{"workers 1", "workers 2"}, Once, 1, 1, no},
		"a no is soon over":        {workers, []string{"workers 1", "workers 2"}, WhileNo, 2, 2, yes},
		"a no stays":               {workers, []string{"workers 1"}, WhileNo, 4, 6, no},
		"not proved is no no":      {workers, []string{"", "workers 2"}, WhileNo, 1, 1, not},
		"it comes up":              {workers, []string{"", "workers 1", "workers 2"}, UntilYes, 3, 3, yes},
		"it never comes up":        {workers, []string{"workers 1"}, UntilYes, 19, 21, no},
		"what lasts is not sought": {hakaru.Ask{Kind: "sql"}, nil, UntilYes, 0, 0, not},
		"a command":                {hakaru.Ask{Kind: "command", Argument: "pgrep"}, []string{""}, UntilYes, 4, 5, not},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				on := Subject{
					Output: func() (string, bool) {
						text := tt.outputs[min(asked, len(tt.outputs)-1)]
						asked++
						return text, false
					},
					Command: func([]string) (*exec.Cmd, error) {
						asked++
						return nil, errors.New("not run")
					},
				}
				e := Seek(t.Context(), on, tt.ask, tt.again)
				if e.Holds != tt.holds || asked < tt.least || asked > tt.most {
					t.Errorf("asked %d times, %+v; want %d to %d times, %v", asked, e, tt.least, tt.most, tt.holds)
				}
			})
		})
	}
}

// Where no process can be looked at, in a container or as another user, nothing
// is proved by nobody.
func TestNobodyProvesNothing(t *testing.T) {
	on := Subject{Group: kernel.Group{Mark: "no such mark"}}
	e := eachDaemon(on, hakaru.Ask{Absent: true}, "maps", func(int) (string, bool, error) { return "", false, os.ErrInvalid })
	if e.Holds != not || e.Found != nobody {
		t.Errorf("%+v", e)
	}
	for _, kind := range []string{"processes", "threads"} {
		if e := Seek(t.Context(), on, hakaru.Ask{Kind: kind, Asked: "4"}, Once); e.Holds != not || e.Found != nobody {
			t.Errorf("%s: %+v", kind, e)
		}
	}
}

// Of a file that hakaru wrote for a service that something else started, only
// the copy is known; what the machine has elsewhere can be asked.
func TestCopyOfAttachedProvesNothing(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()+"/live.conf"
	files := []hakaru.File{{Path: dir + "/nginx.conf", Content: "workers 4;\n"}}
	for _, path := range []string{files[0].Path, outside} {
		if err := os.WriteFile(path, []byte(files[0].Content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	on := Subject{Attached: true, Files: files, Dir: dir, Names: hakaru.Names{"hakaru.dir": dir}}
	for path, want := range map[string]string{
		"": "only hakaru's copy is known", "nginx.conf": "only hakaru's copy is known", "{hakaru.dir}/nginx.conf": "only hakaru's copy is known",
		outside: "no process of the service is there",
	} {
		e := Seek(t.Context(), on, hakaru.Ask{Kind: "file", Argument: path, Contains: "workers 4;"}, Once)
		if e.Holds != not || len(e.Found) < len(want) || e.Found[:len(want)] != want {
			t.Errorf("%q: %+v, want %q", path, e, want)
		}
	}
}
