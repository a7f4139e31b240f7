package load

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/latency"
)

// These loads end by a few requests, so that a handshake has time to end even where
// the machine is busy.
const few = 12

var roomy = hakaru.Window{Length: 10 * time.Second}

// authority signs certificates for the tests.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "authority of the tests"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = a.sign("ca", template, time.Hour)
	return a
}

// sign writes NAME.crt and NAME.key, valid from an hour ago until then.
func (a *authority) sign(name string, template *x509.Certificate, until time.Duration) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	must := func(err error) {
		if err != nil {
			a.t.Helper()
			a.t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(until)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	must(os.WriteFile(a.path(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(os.WriteFile(a.path(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	cert, err := x509.ParseCertificate(der)
	must(err)
	return cert, key
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// pair is a certificate for the names, loaded.
func (a *authority) pair(name string, until time.Duration, names ...string) tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	a.sign(name, template, until)
	pair, err := tls.LoadX509KeyPair(a.path(name+".crt"), a.path(name+".key"))
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

func TestTLS(t *testing.T) {
	a := newAuthority(t)
	good := a.pair("server", time.Hour, "127.0.0.1", "service.test")
	expired := a.pair("expired", -time.Hour, "127.0.0.1")
	a.pair("client", time.Hour)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	for _, c := range []struct {
		name   string
		server *tls.Config // nil: as is
		tls    hakaru.TLS
		change func(*hakaru.HTTPRequest)
		words  string // of the first sample, all of kind tls; empty: all is well
	}{
		{name: "trusted", tls: hakaru.TLS{CA: a.path("ca.crt")}},
		{name: "one connection each", tls: hakaru.TLS{CA: a.path("ca.crt")}, change: func(q *hakaru.HTTPRequest) { q.KeepAlive = false }},
		{name: "TLS 1.2", server: &tls.Config{MaxVersion: tls.VersionTLS12}, tls: hakaru.TLS{CA: a.path("ca.crt")}},
		{name: "another name", tls: hakaru.TLS{CA: a.path("ca.crt"), ServerName: "service.test"}},
		{name: "any certificate", tls: hakaru.TLS{Insecure: true}},
		{name: "unknown authority", words: "TLS handshake: failed to verify certificate: x509: certificate signed by unknown authority"},
		{name: "wrong name", tls: hakaru.TLS{CA: a.path("ca.crt"), ServerName: "other.test"},
			words: "x509: certificate is valid for service.test, not other.test"},
		{name: "expired", server: &tls.Config{Certificates: []tls.Certificate{expired}}, tls: hakaru.TLS{CA: a.path("ca.crt")},
			words: "certificate has expired or is not yet valid"},
		{name: "expired, any certificate", server: &tls.Config{Certificates: []tls.Certificate{expired}}, tls: hakaru.TLS{Insecure: true}},
		{name: "client certificate", server: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool},
			tls: hakaru.TLS{CA: a.path("ca.crt"), Cert: a.path("client.crt"), Key: a.path("client.key")}},
		{name: "client certificate missing", server: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool},
			tls: hakaru.TLS{CA: a.path("ca.crt")}, words: "certificate required"},
		{name: "client certificate missing, TLS 1.2", server: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MaxVersion: tls.VersionTLS12},
			tls: hakaru.TLS{CA: a.path("ca.crt")}, words: "TLS handshake: remote error: tls: "},
		{name: "another protocol", server: &tls.Config{NextProtos: []string{"dot"}}, tls: hakaru.TLS{CA: a.path("ca.crt")},
			words: "TLS handshake: remote error: tls: no application protocol"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))
			if s.TLS = c.server; s.TLS == nil {
				s.TLS = &tls.Config{}
			}
			if len(s.TLS.Certificates) == 0 {
				s.TLS.Certificates = []tls.Certificate{good}
			}
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.StartTLS()
			defer s.Close()
			req := hakaru.HTTPRequest{URL: s.URL + "/", Connections: 4, Requests: few, KeepAlive: true, Expect: "hello", TLS: &c.tls}
			if c.change != nil {
				c.change(&req)
			}
			report, err := HTTP(context.Background(), req, roomy, nil)
			if err != nil {
				t.Fatal(err)
			}
			good, bad := kinds(report)
			if c.words == "" {
				h, err := latency.Decode(report.Tally.Connect)
				if good != few || len(bad) != 0 || err != nil || h.Count() < 1 {
					t.Errorf("%d good, bad %v; %d connect times (%v); samples %v", good, bad, h.Count(), err, report.Samples)
				}
				return
			}
			if good != 0 || bad[hakaru.TLSFailed] != few || len(bad) != 1 {
				t.Errorf("%d good, bad %v, want tls only; samples %v", good, bad, report.Samples)
			} else if got := report.Samples[0]; got.Kind != hakaru.TLSFailed || !strings.Contains(got.Text, c.words) {
				t.Errorf("first sample %v, want %s: %s", got, hakaru.TLSFailed, c.words)
			}
		})
	}
}

// What is no TLS, and what says nothing at all.
func TestServicesWithoutTLS(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(n int, c net.Conn)
		kind  hakaru.ErrorKind
		words string
	}{
		{"HTTP", func(_ int, c net.Conn) {
			io.ReadFull(c, make([]byte, 5))
			say(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
			io.Copy(io.Discard, c)
		}, hakaru.TLSFailed, "TLS handshake: the service does not speak TLS, but HTTP: say http:// instead"},
		{"another protocol", func(_ int, c net.Conn) { say(c, "SSH-2.0-OpenSSH_9.2\r\n"); io.Copy(io.Discard, c) },
			hakaru.TLSFailed, "TLS handshake: the service does not speak TLS"},
		{"hangs up", func(_ int, c net.Conn) { io.ReadAtLeast(c, make([]byte, 1<<14), 200) },
			hakaru.TLSFailed, "TLS handshake: the service closed the connection"},
		{"never answers", func(_ int, c net.Conn) { io.Copy(io.Discard, c) }, hakaru.TimedOut, "deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := listen(t, "tcp", "127.0.0.1:0", c.serve)
			req := hakaru.HTTPRequest{URL: "https://" + l.Addr().String() + "/", Connections: 2, Requests: few, KeepAlive: true, Timeout: 50 * time.Millisecond}
			if c.kind == hakaru.TLSFailed {
				req.Timeout = 10 * time.Second
			}
			report, err := HTTP(context.Background(), req, roomy, nil)
			if err != nil {
				t.Fatal(err)
			}
			good, bad := kinds(report)
			if good != 0 || bad[c.kind] != few || len(bad) != 1 || !strings.Contains(report.Samples[0].Text, c.words) {
				t.Errorf("%d good, bad %v, samples %v, want %s: %s", good, bad, report.Samples, c.kind, c.words)
			}
		})
	}
}

// Services that end connections of TLS without saying so: an answer of known
// length is good, one that lasts until then too, one that is cut off is not.
func TestEndOfTLSThatIsNotSaid(t *testing.T) {
	a := newAuthority(t)
	config := &tls.Config{Certificates: []tls.Certificate{a.pair("server", time.Hour, "127.0.0.1")}}
	for _, c := range []struct {
		name, answer string
		kind         hakaru.ErrorKind // empty: all is well
	}{
		{"whole", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", ""},
		{"until the end", "HTTP/1.1 200 OK\r\n\r\nhello", ""},
		{"cut off", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", hakaru.ShortBody},
		{"nothing", "", hakaru.Closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := listen(t, "tcp", "127.0.0.1:0", func(_ int, below net.Conn) { // which is closed without a word
				conn := tls.Server(below, config)
				eachRequest(conn, func() bool { say(conn, c.answer); return false })
			})
			req := hakaru.HTTPRequest{URL: "https://" + l.Addr().String() + "/", Connections: 2, Requests: few, KeepAlive: true, TLS: &hakaru.TLS{CA: a.path("ca.crt")}}
			report, err := HTTP(context.Background(), req, roomy, nil)
			if err != nil {
				t.Fatal(err)
			}
			good, bad := kinds(report)
			if c.kind == "" && (good != few || len(bad) != 0) || c.kind != "" && (good != 0 || bad[c.kind] != few || len(bad) != 1) {
				t.Errorf("%d good, bad %v, want %q; samples %v", good, bad, c.kind, report.Samples)
			}
		})
	}
}

// The name of the URL is what the service is told (SNI), whatever is connected
// to, and each connection is a whole handshake.
func TestServerNameAndHandshakes(t *testing.T) {
	a := newAuthority(t)
	var resumed, handshakes atomic.Int64
	var told atomic.Value
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told.Store(r.TLS.ServerName + " " + r.TLS.NegotiatedProtocol + " " + r.Host)
		handshakes.Add(1)
		if r.TLS.DidResume {
			resumed.Add(1)
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.pair("server", time.Hour, "service.test")}, NextProtos: []string{"h2", "http/1.1"}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	report, err := HTTP(t.Context(), hakaru.HTTPRequest{URL: "https://service.test/", ConnectTo: s.Listener.Addr().String(), Connections: 2, Requests: few,
		Engine: "goroutines", TLS: &hakaru.TLS{CA: a.path("ca.crt")}}, roomy, nil)
	if err != nil {
		t.Fatal(err)
	}
	if good, bad := kinds(report); good == 0 || len(bad) != 0 {
		t.Errorf("%d good, bad %v; samples %v", good, bad, report.Samples)
	}
	if told.Load() != "service.test http/1.1 service.test" || resumed.Load() > 0 || handshakes.Load() == 0 {
		t.Errorf("name, protocol and host %q, %d of %d connections resumed, want service.test http/1.1 service.test and none", told.Load(), resumed.Load(), handshakes.Load())
	}
}

func TestTLSFiles(t *testing.T) {
	a := newAuthority(t)
	a.pair("one", time.Hour)
	a.pair("two", time.Hour)
	both := append(read(t, a.path("one.crt")), read(t, a.path("one.key"))...)
	if err := os.WriteFile(a.path("both.pem"), both, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.path("empty.pem"), []byte("no PEM\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		tls  hakaru.TLS
		err  []string
	}{
		{"certificate and key in one file", hakaru.TLS{Cert: a.path("both.pem")}, nil},
		{"two files", hakaru.TLS{Cert: a.path("one.crt"), Key: a.path("one.key")}, nil},
		{"no file to trust", hakaru.TLS{CA: a.path("none.crt")}, []string{"read the certificates to trust", "none.crt", "no such file"}},
		{"nothing to trust in it", hakaru.TLS{CA: a.path("empty.pem")}, []string{"empty.pem holds none"}},
		{"no certificate", hakaru.TLS{Cert: a.path("none.crt")}, []string{"read the certificate to show", "none.crt"}},
		{"no key", hakaru.TLS{Cert: a.path("one.crt"), Key: a.path("none.key")}, []string{"read the key", "none.key"}},
		{"a key without a certificate", hakaru.TLS{Key: a.path("one.key")}, []string{"show a certificate with the key", "one.key"}},
		{"a key of another", hakaru.TLS{Cert: a.path("one.crt"), Key: a.path("two.key")}, []string{"one.crt", "two.key", "private key does not match"}},
		{"a file without a key", hakaru.TLS{Cert: a.path("one.crt")}, []string{"one.crt", "a certificate rather than a key"}},
	} {
		_, err := HTTP(t.Context(), hakaru.HTTPRequest{URL: "https://127.0.0.1:1/", Connections: 1, TLS: &c.tls}, hakaru.Window{Length: time.Millisecond}, nil)
		if c.err == nil {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		for _, part := range c.err {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %v, want %q in it", c.name, err, part)
			}
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
