package unit_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hakaru/internal/unit"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"3s": 3 * time.Second, "1.5m": 90 * time.Second, "250ms": 250 * time.Millisecond,
		"0": 0, "0s": 0, "1h30m": 90 * time.Minute, "2 min 5 s": 125 * time.Second,
		" 20 s ": 20 * time.Second, "7 µs": 7 * time.Microsecond, "7us": 7 * time.Microsecond,
		"1d": 24 * time.Hour, ".5s": 500 * time.Millisecond, "0.1ms": 100 * time.Microsecond,
	} {
		got, err := unit.ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "20", "-3s", "s", "3 parsecs", "1.2.3s", "1e3s", "NaN s", "9999999999999h", "3s4", "0x3s"} {
		if got, err := unit.ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		parse func(string) (float64, error)
		text  string
		want  float64
	}{
		"rate":            {unit.ParseRate, "10/s", 10},
		"rate a minute":   {unit.ParseRate, "600/min", 10},
		"rate, blanks":    {unit.ParseRate, "2.5 / s", 2.5},
		"rate, no unit":   {unit.ParseRate, "10", math.NaN()},
		"rate, negative":  {unit.ParseRate, "-1/s", math.NaN()},
		"rate, bad unit":  {unit.ParseRate, "10/x", math.NaN()},
		"bytes":           {unit.ParseBytes, "24 MB", 24e6},
		"bytes, binary":   {unit.ParseBytes, "512MiB", 512 << 20},
		"bytes, bare":     {unit.ParseBytes, "4096", 4096},
		"bytes, unclear":  {unit.ParseBytes, "256M", math.NaN()},
		"bytes, no digit": {unit.ParseBytes, "MB", math.NaN()},
		"share":           {unit.ParseShare, "0.1%", 0.001},
		"share, blank":    {unit.ParseShare, "3 %", 0.03},
		"share, plain":    {unit.ParseShare, "0.25", 0.25},
		"share, negative": {unit.ParseShare, "-1%", math.NaN()},
		"share, word":     {unit.ParseShare, "a lot", math.NaN()},
	} {
		got, err := c.parse(c.text)
		if math.IsNaN(c.want) != (err != nil) {
			t.Errorf("%s: %q gives error %v", name, c.text, err)
		} else if err == nil && math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("%s: %q is %v, want %v", name, c.text, got, c.want)
		}
	}
}

func TestPrint(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{unit.Duration(3020 * time.Millisecond), "3.02 s"},
		{unit.Duration(5300 * time.Microsecond), "5.3 ms"},
		{unit.Duration(0), "0 s"},
		{unit.Duration(90 * time.Second), "90 s"},
		{unit.Duration(200 * time.Second), "3 min 20 s"},
		{unit.Duration(2*time.Hour + 5*time.Minute), "2 h 5 min"},
		{unit.Duration(2*time.Hour - time.Millisecond), "2 h"},
		{unit.Duration(-time.Second), "-1 s"},
		{unit.Duration(math.MinInt64), "-2562047 h 47 min"},
		{unit.ExactDuration(20 * time.Second), "20s"},
		{unit.ExactDuration(90 * time.Second), "1m30s"},
		{unit.ExactDuration(2 * time.Hour), "2h"},
		{unit.ExactDuration(10 * time.Minute), "10m"},
		{unit.ExactDuration(0), "0s"},
		{unit.Seconds(0.0009996), "1 ms"},
		{unit.Seconds(412e-6), "412 µs"},
		{unit.Seconds(math.NaN()), "n/a"},
		{unit.Rate(187.42), "187.4/s"},
		{unit.Rate(12345.4), "12345/s"},
		{unit.Rate(0), "0/s"},
		{unit.Bytes(24e6), "24 MB"},
		{unit.Bytes(999999), "1 MB"},
		{unit.Bytes(512), "512 B"},
		{unit.Share(0.001), "0.1 %"},
		{unit.Share(1), "100 %"},
		{unit.Change(1.124), "+12.4 %"},
		{unit.Change(0.5), "-50.0 %"},
		{unit.Change(3.5), "+250 %"},
		{unit.Change(0.99999), "0.0 %"},
		{unit.Change(math.Inf(1)), "n/a"},
		{unit.Value(0.0053, "s"), "5.3 ms"},
		{unit.Value(1.5, "cpus"), "1.5 cpus"},
		{unit.Value(42, "1"), "42"},
		{unit.Value(math.NaN(), "1"), "n/a"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// What is printed parses to nearly the same number, and prints the same again.
func TestRoundTrip(t *testing.T) {
	kinds := map[string]struct {
		print func(float64) string
		parse func(string) (float64, error)
	}{
		"rate":  {unit.Rate, unit.ParseRate},
		"bytes": {unit.Bytes, unit.ParseBytes},
		"share": {unit.Share, unit.ParseShare},
	}
	for name, kind := range kinds {
		rapid.Check(t, func(t *rapid.T) {
			v := rapid.Float64Range(1e-6, 1e12).Draw(t, "v")
			text := kind.print(v)
			back, err := kind.parse(text)
			if err != nil {
				t.Fatalf("%s: %v is printed %q: %v", name, v, text, err)
			}
			if math.Abs(back-v) > 0.0051*v {
				t.Fatalf("%s: %v is printed %q, read back as %v", name, v, text, back)
			}
			if again := kind.print(back); again != text {
				t.Fatalf("%s: %q is read and printed as %q", name, text, again)
			}
		})
	}
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"3s", "1.5m", "2 min 5 s", "1h30m", "999.6ms", "7 µs", "119.6s", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := unit.ParseDuration(text)
		if err != nil {
			return
		}
		if exact, err := unit.ParseDuration(unit.ExactDuration(d)); err != nil || max(exact-d, d-exact) > d/1e12 {
			t.Fatalf("%q is %v, written %q, read %v, %v", text, d, unit.ExactDuration(d), exact, err)
		}
		short := unit.Duration(d)
		back, err := unit.ParseDuration(short)
		if err != nil {
			t.Fatalf("%q is printed %q: %v", text, short, err)
		}
		if again := unit.Duration(back); again != short {
			t.Fatalf("%q is printed %q, and read and printed again %q", text, short, again)
		}
	})
}
