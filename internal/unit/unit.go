// Package unit turns what people write into numbers and numbers into what
// people read: durations ("1.5m", "250 ms"), rates ("10/s"), sizes ("24 MB"),
// shares ("0.1 %") and changes ("+12.4 %").
//
// It takes and gives a text and a number in the unit every noun of hakaru uses:
// time.Duration or seconds, 1/s, bytes, a share of 1. Printing is short, three
// or four digits, and what is printed can be parsed again to the same text.
//
// It does not know which figure it prints, does not colour or align, and does
// not guess: "256M" is refused, since it is 256 MB to one program and 256 MiB to
// the next.
package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// NoFigure is printed for a number that is none (NaN, an infinity).
const NoFigure = "n/a"

var durationUnits = map[string]float64{
	"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9,
	"m": 60e9, "min": 60e9, "h": 3600e9, "d": 86400e9,
}

// split cuts text into its leading number and the rest, blanks between them
// removed. The number is decimal: no sign, no exponent, no hexadecimal.
func split(text string) (number float64, rest string, ok bool) {
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.') {
		end++
	}
	number, err := strconv.ParseFloat(text[:end], 64)
	if err != nil || math.IsInf(number, 0) {
		return 0, "", false
	}
	return number, strings.TrimLeft(text[end:], " \u00a0"), true
}

// ParseDuration reads "3s", "1.5m", "250ms", "1h30m", "2 min 5 s". A number
// without a unit is refused except 0.
func ParseDuration(text string) (time.Duration, error) {
	wrong := func(why string) (time.Duration, error) {
		return 0, fmt.Errorf("%q is not a duration: %s, such as 250ms, 20s or 1.5m", text, why)
	}
	rest := strings.TrimSpace(text)
	if rest == "0" {
		return 0, nil
	}
	if rest == "" {
		return wrong("write a number and a unit")
	}
	if rest[0] == '-' {
		return wrong("it must not be negative; write a number and a unit")
	}
	var total float64
	for rest != "" {
		number, tail, ok := split(rest)
		if !ok {
			return wrong("write a number and a unit")
		}
		end := strings.IndexAny(tail, "0123456789. \u00a0")
		if end < 0 {
			end = len(tail)
		}
		name := tail[:end]
		size, known := durationUnits[name]
		switch {
		case name == "":
			return wrong("it has no unit; write a number and a unit")
		case !known:
			return wrong(fmt.Sprintf("there is no unit %q; write a number and one of ns, us, ms, s, m, h, d", name))
		}
		total += number * size
		rest = strings.TrimLeft(tail[end:], " \u00a0")
	}
	if total >= math.MaxInt64 {
		return wrong("it is too long; write a number and a unit")
	}
	return time.Duration(math.Round(total)), nil
}

// Duration prints a duration in three digits, from two minutes on in minutes and
// seconds, from two hours on in hours and minutes: "5.3 ms", "3.02 s",
// "3 min 20 s".
func Duration(d time.Duration) string {
	if d < 0 {
		if d == math.MinInt64 {
			d++
		}
		return "-" + Duration(-d)
	}
	if round := d.Round(time.Minute); d.Round(time.Second) >= 2*time.Hour {
		return two(int64(round/time.Hour), "h", int64(round%time.Hour/time.Minute), "min")
	}
	if round := d.Round(time.Second); round >= 2*time.Minute {
		return two(int64(round/time.Minute), "min", int64(round%time.Minute/time.Second), "s")
	}
	return Seconds(d.Seconds())
}

func two(a int64, unitA string, b int64, unitB string) string {
	if b == 0 {
		return fmt.Sprintf("%d %s", a, unitA)
	}
	return fmt.Sprintf("%d %s %d %s", a, unitA, b, unitB)
}

// ExactDuration prints a duration without rounding, as it would be written in a
// file: "20s", "1m30s", "250ms".
func ExactDuration(d time.Duration) string {
	text := d.String() // "1m0s", "2h0m0s"
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Seconds prints seconds in three digits with the unit that suits: "412 µs",
// "5.3 ms", "3.02 s". Minutes are left to Duration.
func Seconds(s float64) string {
	switch abs := math.Abs(s); {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return NoFigure
	case abs == 0:
		return "0 s"
	case abs < 999.5e-9:
		return digits(s*1e9, 3) + " ns"
	case abs < 999.5e-6:
		return digits(s*1e6, 3) + " µs"
	case abs < 999.5e-3:
		return digits(s*1e3, 3) + " ms"
	}
	return digits(s, 3) + " s"
}

// digits prints v with n significant digits, but never rounds before the point,
// and without trailing zeros.
func digits(v float64, n int) string {
	if v == 0 {
		return "0"
	}
	decimals := n - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	decimals = min(max(decimals, 0), 12)
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}

// ParseRate reads "10/s", "600/min", "2.5 / s".
func ParseRate(text string) (float64, error) {
	number, rest, ok := split(strings.TrimSpace(text))
	per, found := strings.CutPrefix(rest, "/")
	size, known := durationUnits[strings.TrimSpace(per)]
	if !ok || !found || !known {
		return 0, fmt.Errorf("%q is not a rate: write a number per time, such as 10/s or 600/m", text)
	}
	return number / size * 1e9, nil
}

// Rate prints a rate in four digits: "187.4/s", "12345/s".
func Rate(perSecond float64) string {
	if math.IsNaN(perSecond) || math.IsInf(perSecond, 0) {
		return NoFigure
	}
	return digits(perSecond, 4) + "/s"
}

var byteUnits = map[string]float64{
	"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// ParseBytes reads "24 MB" (decimal), "512MiB" (binary), "4096 B", "4096".
func ParseBytes(text string) (float64, error) {
	number, rest, ok := split(strings.TrimSpace(text))
	if rest == "" {
		rest = "B"
	}
	size, known := byteUnits[rest]
	switch {
	case ok && known:
		return number * size, nil
	case ok && len(rest) == 1 && strings.Contains("kKMGT", rest):
		letter := strings.ToUpper(rest)
		return 0, fmt.Errorf("%q is not a size: %s may be decimal or binary; write %sB or %siB", text, rest, letter, letter)
	}
	return 0, fmt.Errorf("%q is not a size: write a number and B, kB, MB, GB, KiB, MiB or GiB, such as 200 MB", text)
}

// Bytes prints a size in three digits with decimal units: "24 MB".
func Bytes(n float64) string {
	switch abs := math.Abs(n); {
	case math.IsNaN(n) || math.IsInf(n, 0):
		return NoFigure
	case abs < 999.5:
		return digits(n, 3) + " B"
	case abs < 999.5e3:
		return digits(n/1e3, 3) + " kB"
	case abs < 999.5e6:
		return digits(n/1e6, 3) + " MB"
	case abs < 999.5e9:
		return digits(n/1e9, 3) + " GB"
	}
	return digits(n/1e12, 3) + " TB"
}

// ParseShare reads "0.1%", "3 %" or a plain "0.001" as a share of 1.
func ParseShare(text string) (float64, error) {
	number, rest, ok := split(strings.TrimSpace(text))
	switch {
	case ok && rest == "%":
		return number / 100, nil
	case ok && rest == "":
		return number, nil
	}
	return 0, fmt.Errorf("%q is not a percentage: write a number and %%, such as 0.1%%", text)
}

// Share prints a share as a percentage in three digits: 0.001 is "0.1 %".
func Share(share float64) string {
	if math.IsNaN(share) || math.IsInf(share, 0) {
		return NoFigure
	}
	return digits(share*100, 3) + " %"
}

// Change prints a ratio as the change it is, with one decimal below 100 %:
// 1.124 is "+12.4 %", 0.5 is "-50.0 %".
func Change(ratio float64) string {
	change := (ratio - 1) * 100
	if math.IsNaN(change) || math.IsInf(change, 0) {
		return NoFigure
	}
	decimals := 1
	if math.Abs(change) >= 99.95 {
		decimals = 0
	}
	text := strconv.FormatFloat(change, 'f', decimals, 64)
	switch {
	case strings.Trim(text, "-0.") == "":
		return "0.0 %" // never "-0.0 %"
	case change > 0:
		text = "+" + text
	}
	return text + " %"
}

// Value prints a figure in the unit that a measurement names: "1/s", "s", "B",
// "ratio", "cpus", "1".
func Value(v float64, of string) string {
	switch of {
	case "1/s":
		return Rate(v)
	case "s":
		return Seconds(v)
	case "B":
		return Bytes(v)
	case "ratio":
		return Share(v)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return NoFigure
	}
	if of == "1" || of == "" {
		return digits(v, 4)
	}
	return digits(v, 4) + " " + of
}
