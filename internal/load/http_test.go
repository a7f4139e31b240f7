package load

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hakaru"
)

func TestQuick(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("hello")) }))
	defer s.Close()
	for _, ka := range []bool{true, false} {
		rep, err := HTTP(context.Background(), hakaru.HTTPRequest{URL: s.URL + "/x", Connections: 16, KeepAlive: ka, Expect: "ell"},
			hakaru.Window{Start: time.Now().Add(100 * time.Millisecond), WarmUp: 500 * time.Millisecond, Length: time.Second}, func(b hakaru.Bucket) { t.Log(b.At, b.Good, b.Bad, b.Counters) })
		t.Log(rep.Counters, rep.Samples, rep.Connections, len(rep.Latency), err)
	}
}
