package program

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"hakaru"
)

// redirect is one request beside those of wrk, which takes 3xx for right and does
// not tell it apart, where ab and hakaru's own load take it for wrong: a variant
// that redirects would be the fastest of all.
type redirect struct {
	cancel context.CancelFunc
	found  chan *hakaru.Sample // gets one, nil where there is no redirect
	sample *hakaru.Sample
}

// askForRedirect sends the request; the caller calls end. Where further words of
// the command line (args) may change what is asked, nothing is asked.
func (r *running) askForRedirect(ctx context.Context) *redirect {
	a := &redirect{found: make(chan *hakaru.Sample, 1)}
	ctx, a.cancel = context.WithCancel(ctx)
	if r.spec.Name != "wrk" || r.spec.Options["args"] != "" {
		a.found <- nil
		return a
	}
	go func() {
		sample, err := redirects(ctx, r.spec.Options)
		if err != nil {
			sample = nil // wrk tells of an answer that does not come, and of a URL that is none
		}
		a.found <- sample
	}()
	return a
}

// end waits for the answer no longer, and returns it where it was a redirect.
func (a *redirect) end() *hakaru.Sample {
	a.cancel()
	if a.found != nil {
		a.sample = <-a.found
		a.found = nil
	}
	return a.sample
}

func redirects(ctx context.Context, o map[string]string) (_ *hakaru.Sample, err error) {
	target, err := httpURL(o["url"])
	if err != nil {
		return nil, err
	}
	method := firstWord(o["method"], http.MethodGet)
	if o["body"] != "" && o["method"] == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(o["body"]))
	if err != nil {
		return nil, fmt.Errorf("ask %s once: %w", target, err)
	}
	for _, h := range headers(o) {
		name, value, _ := strings.Cut(h, ": ")
		if strings.EqualFold(name, "Host") {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	client := http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: true, DisableCompression: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // wrk does not look either
		},
	}
	answer, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s once: %w", target, err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode < 300 || answer.StatusCode > 399 {
		return nil, nil
	}
	text := fmt.Sprintf("%s %s was answered with %s", method, req.URL.RequestURI(), answer.Status)
	if to := answer.Header.Get("Location"); to != "" {
		text += " to " + to
	}
	return &hakaru.Sample{Kind: hakaru.WrongStatus, Text: text + ", which wrk takes for right"}, nil
}
