package proof

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"hakaru"
)

// What is sent unasked is read to its end: the peer's close, or that of a JSON
// value, whatever the pieces.
func TestReadAll(t *testing.T) {
	for name, tt := range map[string]struct {
		pieces []string
		stay   bool // open
		want   string
		err    string
	}{
		"closed":          {[]string{"workers: ", "4\n"}, false, "workers: 4\n", ""},
		"json, then open": {[]string{`{"workers": `, `[1, 2]`, `}`}, true, `{"workers": [1, 2]}`, ""},
		"nothing":         {nil, false, "", ""},
		"too much":        {[]string{strings.Repeat("x", answerSize), "y"}, true, "", "sends more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			read := make(chan struct{})
			sent := make(chan error, 1)
			go func() {
				c, err := l.Accept()
				if err != nil {
					sent <- err
					return
				}
				for _, p := range tt.pieces {
					if _, err := io.WriteString(c, p); err != nil {
						break // it has read enough
					}
				}
				if tt.stay {
					<-read
				}
				sent <- c.Close()
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			body, err := readAll(ctx, "tcp", l.Addr().String())
			close(read)
			if body != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%.100q, %v", body, err)
			}
			if err := <-sent; err != nil {
				t.Error(err)
			}
		})
	}
}

// A value never makes two words of one, and is no command line of its own.
func TestCommandWords(t *testing.T) {
	var got []string
	on := Subject{PID: 812, Names: hakaru.Names{"dir": `/tmp/a "b" $(c) {pid}`}, Command: func(words []string) (*exec.Cmd, error) {
		got = words
		return nil, fmt.Errorf("not run")
	}}
	e := commandOutput(t.Context(), on, hakaru.Ask{Argument: `ls -l {dir}/x '{pid} {other}'`})
	want := []string{"ls", "-l", `/tmp/a "b" $(c) {pid}/x`, "812 {other}"}
	if !slices.Equal(got, want) || e.Holds != hakaru.NotProved || e.Found != "not run" {
		t.Errorf("%q, %+v", got, e)
	}
}

// What a command prints is bounded.
func TestCommandOutputBounded(t *testing.T) {
	on := Subject{Command: func(words []string) (*exec.Cmd, error) { return exec.Command(words[0], words[1:]...), nil }}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	e := commandOutput(ctx, on, hakaru.Ask{Argument: "seq 1 100000", Contains: "99999"})
	if e.Holds != hakaru.NotProved || !strings.HasSuffix(e.Found, "(more was printed than is read)") || len(e.Found) > 2*Shown {
		t.Errorf("%+v", e)
	}
	e = commandOutput(ctx, on, hakaru.Ask{Argument: "seq 1 100000", Contains: "\n77\n"})
	if e.Holds != hakaru.Yes {
		t.Errorf("%+v", e)
	}
}
