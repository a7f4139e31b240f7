package answer

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"hakaru"
	"hakaru/internal/service/proof"
)

// What is said about an answer that is not the right one.
func TestAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/short":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("6765"))
		default:
			_, _ = w.Write([]byte("It works!\n" + strings.Repeat("x", 500)))
		}
	}))
	defer server.Close()
	for _, tt := range []struct {
		path  string
		ready hakaru.Ready
		want  string
	}{
		{"/", hakaru.Ready{Body: "works"}, ""},
		{"/", hakaru.Ready{Status: 200}, ""},
		{"/", hakaru.Ready{Status: 204}, "status 204 is wanted"},
		{"/", hakaru.Ready{Body: "6765"}, `a body that contains "6765" is wanted`},
		{"/moved", hakaru.Ready{}, "a status of 2xx is wanted"},
		{"/moved", hakaru.Ready{Status: 302}, ""},
		{"/short", hakaru.Ready{}, "read the body: unexpected EOF"},
	} {
		tt.ready.Get = server.URL + tt.path
		answers, err := Ask(t.Context(), tt.ready, Who{Service: "app"})
		got := ""
		for _, a := range answers {
			got += a.Got
		}
		switch {
		case tt.want == "" && (err != nil || !strings.HasPrefix(got, strconv.Itoa(max(200, tt.ready.Status))) || len(got) > proof.Shown+40):
			t.Errorf("%+v: %q, %v", tt.ready, got, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "GET "+server.URL+tt.path)):
			t.Errorf("%+v: error %v, want %q", tt.ready, err, tt.want)
		}
	}
	address := server.Listener.Addr().String()
	both := hakaru.Ready{Log: "ready", Connect: address, Get: server.URL}
	if answers, err := Ask(t.Context(), both, Who{Service: "app", Log: func() bool { return true }}); err != nil || len(answers) != 3 || answers[0].Service != "app" {
		t.Errorf("three questions: %v, %v", answers, err)
	}
	if _, err := Ask(t.Context(), both, Who{Log: func() bool { return false }}); err == nil || !strings.Contains(err.Error(), `does not contain "ready"`) {
		t.Errorf("without the line: %v", err)
	}
	// The right answer of the wrong process is none.
	held := errors.New("held")
	for _, ready := range []hakaru.Ready{{Connect: address}, {Get: server.URL}, {Get: server.URL, Status: 500}} {
		asked := ""
		_, err := Ask(t.Context(), ready, Who{Ours: func(address string) error { asked = address; return held }})
		if !errors.Is(err, held) || asked != ready.Connect+ready.Get {
			t.Errorf("%+v: asked for %q, %v", ready, asked, err)
		}
	}
}
