package refserver

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"hakaru/internal/refserver/config"
)

const statusPath = "/-/status"

// handler answers requests under the laws of a Config.
type handler struct {
	cfg      *config.Config
	board    *scoreboard
	me       *slot
	threads  chan *thread // a request takes one and puts it back; waiters are served in order
	draining *atomic.Bool // the next answer of each connection is its last
	log      io.Writer    // nil: no request log
	limit    uint64       // requests after which full is closed; 0: none
	full     chan struct{}
	status   func() Status
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == statusPath {
		// Neither a thread nor a count: looking on changes nothing.
		h.lastAnswer(w)
		writeStatus(w, h.status())
		return
	}
	h.me.busy.Add(1)
	defer h.me.busy.Add(^uint64(0))
	began := time.Now()
	var t *thread
	select {
	case t = <-h.threads:
	case <-r.Context().Done(): // the client is gone
		return
	}
	defer func() { h.threads <- t }()

	status, kind, body := answer(r.URL.Path)
	if h.fails() {
		status, kind, body = http.StatusInternalServerError, "text/plain; charset=utf-8", []byte("error, as error-rate asks for\n")
	}
	if err := t.work(h.cfg); err != nil {
		status, kind, body = http.StatusInternalServerError, "text/plain; charset=utf-8", []byte(err.Error()+"\n")
	}
	h.lastAnswer(w)
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		// An error here is a client that is gone, which the log's reader sees
		// as an answered request: so did every other server.
		_, _ = w.Write(body)
	}
	if h.log != nil {
		h.logRequest(r, status, len(body), began)
	}
	if n := h.me.requests.Add(1); h.limit > 0 && n == h.limit {
		close(h.full)
	}
}

func (h *handler) lastAnswer(w http.ResponseWriter) {
	if h.draining.Load() {
		w.Header().Set("Connection", "close")
	}
}

// fails spreads the errors evenly: of n answers of the whole service, the floor
// of n·rate are errors, for every n. The small addition is for rates that have
// no exact binary form.
func (h *handler) fails() bool {
	if h.cfg.ErrorRate <= 0 {
		return false
	}
	n := float64(h.board.answered.Add(1))
	floor := func(n float64) float64 { return math.Floor(n*h.cfg.ErrorRate + 1e-9) }
	return floor(n) > floor(n-1)
}

// logRequest writes the line at once, as the point of a request log here is
// what it costs.
func (h *handler) logRequest(r *http.Request, status, size int, began time.Time) {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		from = "-" // a unix socket
	}
	line := fmt.Appendf(nil, "%s - - [%s] %q %d %d %.6f\n", from, began.Format("02/Jan/2006:15:04:05 -0700"),
		r.Method+" "+r.RequestURI+" "+r.Proto, status, size, time.Since(began).Seconds())
	// A full disk must not end the service; that lines are missing is what
	// somebody who reads the log sees.
	_, _ = h.log.Write(line)
}

// answer is what a path gives, without the laws.
func answer(path string) (status int, kind string, body []byte) {
	const text = "text/plain; charset=utf-8"
	if path == "/" {
		return http.StatusOK, text, []byte("hakaru serve\n")
	}
	digits := strings.TrimPrefix(strings.TrimPrefix(path, "/fib"), "/")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return http.StatusNotFound, text, []byte("not found: there is /, /fib/NUMBER, /NUMBER and " + statusPath + "\n")
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || number > lastFibonacci {
		return http.StatusBadRequest, text, fmt.Appendf(nil, "the number is above %d\n", lastFibonacci)
	}
	return http.StatusOK, "application/json", fibonacci(number)
}

// lastFibonacci is F(93), the largest that fits 64 bits.
const lastFibonacci uint64 = 12200160415121876738

// fibonacci writes the sequence as a JSON array, up to the first that is not
// below number, in the form Python's json.dumps has.
func fibonacci(number uint64) []byte {
	out := make([]byte, 0, 256)
	out = append(out, "[0, 1"...)
	for a, b := uint64(0), uint64(1); b < number; {
		sum, carry := bits.Add64(a, b, 0)
		if carry != 0 {
			break // can not happen below lastFibonacci
		}
		a, b = b, sum
		out = append(out, ", "...)
		out = strconv.AppendUint(out, b, 10)
	}
	return append(out, ']')
}
