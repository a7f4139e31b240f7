package program

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hakaru"
)

// holding is a service that answers no request until it is let go, and then all.
type holding struct {
	net.Listener
	mu   sync.Mutex
	open bool
	kept []net.Conn
	done chan struct{}
}

func newHolding(t *testing.T) *holding {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &holding{Listener: l, done: make(chan struct{})}
	go h.serve()
	t.Cleanup(func() {
		h.letGo()
		h.Close()
		<-h.done
	})
	return h
}

func (h *holding) serve() {
	defer close(h.done)
	var answering sync.WaitGroup
	defer answering.Wait()
	for {
		c, err := h.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		if !h.open {
			h.kept = append(h.kept, c)
			h.mu.Unlock()
			continue
		}
		h.mu.Unlock()
		answering.Go(func() {
			defer c.Close()
			for r := bufio.NewReader(c); ; {
				if _, err := http.ReadRequest(r); err != nil {
					return
				}
				if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")); err != nil {
					return
				}
			}
		})
	}
}

func (h *holding) letGo() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = true
	for _, c := range h.kept {
		c.Close()
	}
	h.kept = nil
}

// The measured run begins when the service has done with the requests that the
// warm-up walked away from, or says that it does not.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	const letGoAt = 3 * time.Second
	for _, c := range []struct {
		name string
		rest time.Duration // beside warm-up and window
		done bool          // in time
	}{{"done with", 15 * time.Second, true}, {"not done with", 3 * time.Second, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHolding(t)
			spec := hakaru.LoadSpec{WarmUp: time.Second, Window: time.Second, Program: &hakaru.ProgramSpec{Name: "wrk", Connections: 2,
				Options: map[string]string{"url": "http://{http}/"}}}
			w := hakaru.Window{Start: time.Now(), WarmUp: spec.WarmUp, Length: spec.Window + c.rest}
			sending := time.Duration(-1)
			report, err := Run(t.Context(), spec, hakaru.Names{"http": h.Addr().String()}, os.Environ(), w, func(b hakaru.Bucket) {
				if b.Sending && sending < 0 {
					sending = b.At
				}
				if c.done && b.At == letGoAt {
					h.letGo()
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			said := slices.ContainsFunc(report.Warnings, func(w hakaru.Warning) bool {
				// wrk makes one more at its start, and sends nothing on it.
				return w.Code == "left_over" && strings.Contains(w.Message, "3 connections 1 s later")
			})
			if said == c.done || sending != report.Begun || c.done && (report.Begun <= letGoAt || report.Totals.Good == 0) {
				t.Errorf("begun after %v, seen %v, %+v, %+v", report.Begun, sending, report.Totals, report.Warnings)
			}
		})
	}
}

// A program that takes its time to end when its warm-up is over is measured from
// when it is started, not from when it should have been.
func TestSlowEnd(t *testing.T) {
	t.Parallel()
	bench := script(t, `d=$(dirname $0); [ -e $d/again ] && { echo 7; exit; }; touch $d/again; trap 'sleep 1.2; exit' TERM; sleep 600 & wait`)
	spec := hakaru.LoadSpec{WarmUp: hakaru.BucketWidth, Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "command", Counted: true,
		Options: map[string]string{"run": bench, "score": `(\d)`}}}
	report, err := send(t, t.Context(), spec, "")
	if err != nil || report.Totals.Failed != "" {
		t.Fatal(err, report.Totals)
	}
	if report.Begun <= time.Second || time.Duration(len(report.Buckets))*hakaru.BucketWidth <= report.Begun {
		t.Errorf("begun after %v, %d buckets", report.Begun, len(report.Buckets))
	}
}

// A redirect, which wrk takes for right, is told apart.
func TestRedirect(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-A") != "" {
			fmt.Fprint(w, "hello")
			return
		}
		http.Redirect(w, r, "/there/", http.StatusMovedPermanently)
	}))
	t.Cleanup(s.Close)
	for name, c := range map[string]struct {
		options map[string]string
		want    bool
	}{
		"redirects":                              {map[string]string{}, true},
		"right with a header":                    {map[string]string{"headers.X-A": "1"}, false},
		"may be, but what is asked is not known": {map[string]string{"args": "-H 'X-B: 1'"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.options["url"] = "http://{http}/here"
			spec := hakaru.LoadSpec{Window: time.Second, Program: &hakaru.ProgramSpec{Name: "wrk", Connections: 1, Options: c.options}}
			report, err := send(t, t.Context(), spec, strings.TrimPrefix(s.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			wrong := report.Totals.Kinds[string(hakaru.WrongStatus)]
			if (wrong == 1) != c.want || (len(report.Samples) == 1) != c.want || report.Totals.Good == 0 {
				t.Fatalf("%+v, %+v", report.Totals, report.Samples)
			}
			const text = "GET /here was answered with 301 Moved Permanently to /there/, which wrk takes for right"
			if c.want && report.Samples[0].Text != text {
				t.Errorf("%q", report.Samples[0].Text)
			}
		})
	}
}

// What a load host lacks is not the variant's doing.
func TestBlame(t *testing.T) {
	for _, c := range []struct {
		w    Written
		want bool
	}{
		{Written{State: "signal: killed"}, true},
		{Written{State: "exit status 99", Stderr: "Benchmarking 127.0.0.1\napr_socket_connect(): Cannot assign requested address (99)\n"}, true},
		{Written{State: "exit status 24", Stderr: "socket: Too many open files (24)\n"}, true},
		{Written{State: "exit status 12", Stderr: "ab: Could not allocate memory: Cannot allocate memory\n"}, true},
		{Written{State: "exit status 104", Stderr: "apr_socket_recv: Connection reset by peer (104)\n"}, false},
		{Written{State: "exit status 3", Stderr: "Cannot allocate memory\n1\n2\n3\n"}, false},
	} {
		var got hakaru.Totals
		blame(&got, c.w)
		if got.OfLoadHost != c.want {
			t.Errorf("%+v: %v", c.w, got.OfLoadHost)
		}
	}
}
