package nginxconf_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hakaru/internal/nginxconf"
)

// replace makes several replacements, one after the other.
func replace(text string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// nginxReads runs nginx on a config file without starting it (-T shows what it
// reads), with all that it writes in one directory.
func nginxReads(dir, file string) (string, error) {
	out, err := exec.Command("nginx", "-T", "-q", "-p", dir+"/", "-e", filepath.Join(dir, "start.log"), "-c", file).CombinedOutput()
	return string(out), err
}

// private puts all that nginx writes into one directory, by the editor itself.
func private(t *testing.T, dir, content string) string {
	t.Helper()
	own := []setting{put("pid", dir+"/nginx.pid"), put("error_log", dir+"/error.log"), within("events", put("worker_aio_requests", "16"))}
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		own = append(own, within("http", put(kind+"_temp_path", dir+"/"+kind)))
	}
	out, err := putAll(strings.ReplaceAll(content, "@", dir), own)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// nginx accepts every edited file of the table and shows what was put in.
func TestPutConfirm(t *testing.T) {
	for name, c := range table {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			edited, err := putAll(c.content, c.edits)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "nginx.conf")
			write(t, path, private(t, dir, edited))
			out, err := nginxReads(dir, path)
			if err != nil {
				t.Fatalf("nginx refuses it: %v\n%s", err, out)
			}
			last := map[string]setting{}
			for _, e := range c.edits {
				last[e.name] = e
			}
			for name, e := range last {
				got, found := nginxconf.Value(out, []string{name}, e.context)
				switch {
				case e.value == nil && found:
					t.Errorf("%s was taken away; nginx reads %q", name, got)
				case e.value != nil && got != strings.ReplaceAll(*e.value, "@", dir):
					t.Errorf("%s was set to %q; nginx reads %q", name, *e.value, got)
				}
			}
		})
	}
}

// nginx accepts what was put into a file that is included within http.
func TestPutFragmentConfirm(t *testing.T) {
	for name, c := range fragments {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			edited, err := putAll(strings.ReplaceAll(c.content, "@", dir), c.edits)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "site.conf"), edited)
			path := filepath.Join(dir, "nginx.conf")
			write(t, path, private(t, dir, "events {}\nhttp { include "+dir+"/site.conf; }\n"))
			if out, err := nginxReads(dir, path); err != nil {
				t.Errorf("nginx refuses it: %v\n%s\n%s", err, out, edited)
			}
		})
	}
}

// Where nginx looks for a relative path says whether Relocate has to care: in
// the directory of the config file, or in its prefix.
func TestRelocateConfirm(t *testing.T) {
	for _, directive := range []string{
		"include", "ssl_certificate", "ssl_trusted_certificate", "ssl_client_certificate", "ssl_crl", "ssl_dhparam",
		"ssl_password_file", "ssl_session_ticket_key", "ssl_stapling_file", "proxy_ssl_trusted_certificate", "proxy_ssl_crl",
		"proxy_ssl_password_file", "uwsgi_ssl_trusted_certificate", "grpc_ssl_trusted_certificate", "access_log", "load_module",
	} {
		t.Run(directive, func(t *testing.T) {
			dir := t.TempDir()
			place, elsewhere := filepath.Join(dir, "etc"), filepath.Join(dir, "copy")
			for _, d := range []string{place, elsewhere} {
				if err := os.Mkdir(d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			inner := directive + " none/such;"
			switch {
			case directive == "load_module" || directive == "include":
				inner = inner + "\nevents {}\nhttp {}\n"
			case strings.HasPrefix(directive, "ssl_"):
				// The rest is read once there is a certificate that can be.
				write(t, filepath.Join(dir, "c.pem"), certificate(t))
				if directive != "ssl_certificate" {
					inner = "ssl_certificate @/c.pem; ssl_certificate_key @/c.pem; ssl_stapling on; ssl_verify_client optional_no_ca; " + inner
				} else {
					inner += " ssl_certificate_key @/c.pem;"
				}
				inner = "events {}\nhttp { server { listen unix:@/s ssl; " + inner + " } }\n"
			case strings.Contains(directive, "ssl"):
				kind, _, _ := strings.Cut(directive, "_")
				pass := map[string]string{"proxy": "proxy_pass https://127.0.0.1:1;", "uwsgi": "uwsgi_pass suwsgi://127.0.0.1:1;", "grpc": "grpc_pass grpcs://127.0.0.1:1;"}[kind]
				inner = "events {}\nhttp { server { listen unix:@/s; location / { " + pass + " " + kind + "_ssl_verify on; " + inner + " } } }\n"
				if kind+"_ssl_password_file" == directive || kind+"_ssl_crl" == directive {
					inner = replace(inner, directive, kind+"_ssl_trusted_certificate @/c.pem; "+kind+"_ssl_certificate @/c.pem; "+kind+"_ssl_certificate_key @/c.pem; "+directive)
					write(t, filepath.Join(dir, "c.pem"), certificate(t))
				}
			default:
				inner = "events {}\nhttp { " + inner + " }\n"
			}
			content := private(t, dir, inner)
			path := filepath.Join(place, "nginx.conf")
			write(t, path, content)
			want, err := nginxReads(dir, path)
			if err == nil {
				t.Fatalf("nginx accepts a path that is not there:\n%s", content)
			}
			beside := strings.Contains(want, place+"/none/such")
			if !beside && !strings.Contains(want, dir+"/none/such") {
				t.Fatalf("nginx looks elsewhere:\n%s", want)
			}
			moved := nginxconf.Relocate(content, path)
			if (moved != content) != beside {
				t.Errorf("beside the config file: %v; relocated:\n%s", beside, moved)
			}
			copied := filepath.Join(elsewhere, "nginx.conf")
			write(t, copied, moved)
			got, err := nginxReads(dir, copied)
			looked := place + "/none/such"
			if !beside {
				looked = dir + "/none/such"
			}
			if err == nil || !strings.Contains(got, looked) {
				t.Errorf("the copy looks elsewhere:\n%s", got)
			}
		})
	}
}

// certificate returns one with its key.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"hakaru.test"}}
	signed, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
