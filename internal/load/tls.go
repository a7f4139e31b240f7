package load

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"hakaru"
	"hakaru/internal/load/job"
)

// tlsConfig is how connections of https are made; nil is as a browser would.
//
// Sessions are not resumed: each connection is made by a whole handshake, as by
// somebody who was never there before. With keep-alive it makes no difference;
// without, the load stands for many clients and not for one that comes back, and
// connections share nothing that they would have to lock.
func tlsConfig(t *hakaru.TLS, host string) (*tls.Config, error) {
	if t == nil {
		t = &hakaru.TLS{}
	}
	c := &tls.Config{
		ServerName:         host,
		InsecureSkipVerify: t.Insecure,
		NextProtos:         []string{"http/1.1"},
	}
	if t.ServerName != "" {
		c.ServerName = t.ServerName
	}
	if t.CA == "" && !t.Insecure {
		// Read now, not within the first handshakes. Without any, which is no error
		// before a certificate is to be checked, they would be looked for again.
		if system, err := x509.SystemCertPool(); err == nil {
			c.RootCAs = system
		}
	}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read the certificates to trust: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, &job.TargetError{Err: fmt.Errorf("read the certificates to trust: %s holds none", t.CA),
				Help: "want PEM: -----BEGIN CERTIFICATE-----"}
		}
	}
	if t.Cert == "" && t.Key != "" {
		return nil, &job.TargetError{Err: fmt.Errorf("show a certificate with the key %s: there is none", t.Key), Help: "name its file with cert"}
	}
	if t.Cert != "" {
		pair, err := readPair(t.Cert, t.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// readPair reads a certificate and its key, which may be in the same file.
func readPair(certFile, keyFile string) (tls.Certificate, error) {
	if keyFile == "" {
		keyFile = certFile
	}
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the certificate to show: %w", err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the key of the certificate to show: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, &job.TargetError{Err: fmt.Errorf("certificate to show, %s, with key %s: %s", certFile, keyFile, cause(err)),
			Help: "want PEM, and a key that belongs to the certificate and has no password"}
	}
	return pair, nil
}
