package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// defaultDateFormat is Kafka's tool's own. Go's time layouts cannot express its
// milliseconds after a colon, so the patterns are formatted here.
const defaultDateFormat = "yyyy-MM-dd HH:mm:ss:SSS"

// dateFormat is a parsed java.text.SimpleDateFormat pattern.
type dateFormat []datePart

// datePart is literal text (letter 0), or a letter and how often it stands in a row.
type datePart struct {
	letter  byte
	width   int
	literal string
}

const dateLetters = "yMdEHhkKmsSazZX"

func parseDateFormat(pattern string) (dateFormat, error) {
	var f dateFormat
	for i := 0; i < len(pattern); {
		c := pattern[i]
		switch {
		case c == '\'':
			end := strings.IndexByte(pattern[i+1:], '\'')
			if end < 0 {
				return nil, fmt.Errorf("pattern %q has a quote that does not end", pattern)
			}
			text := pattern[i+1 : i+1+end]
			if text == "" {
				text = "'"
			}
			f = append(f, datePart{literal: text})
			i += end + 2
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			if strings.IndexByte(dateLetters, c) < 0 {
				return nil, fmt.Errorf("pattern %q has the letter %c; known are %s", pattern, c, dateLetters)
			}
			end := i
			for end < len(pattern) && pattern[end] == c {
				end++
			}
			f = append(f, datePart{letter: c, width: end - i})
			i = end
		default:
			f = append(f, datePart{literal: string(c)})
			i++
		}
	}
	return f, nil
}

func (f dateFormat) format(t time.Time) string {
	var b strings.Builder
	for _, part := range f {
		if part.letter == 0 {
			b.WriteString(part.literal)
		} else {
			b.WriteString(part.format(t))
		}
	}
	return b.String()
}

func (p datePart) format(t time.Time) string {
	padded := func(n int) string {
		digits := strconv.Itoa(n)
		return strings.Repeat("0", max(0, p.width-len(digits))) + digits
	}
	switch p.letter {
	case 'y':
		if p.width == 2 {
			return t.Format("06")
		}
		return padded(t.Year())
	case 'M':
		switch {
		case p.width >= 4:
			return t.Month().String()
		case p.width == 3:
			return t.Format("Jan")
		}
		return padded(int(t.Month()))
	case 'E':
		if p.width >= 4 {
			return t.Weekday().String()
		}
		return t.Format("Mon")
	case 'a':
		return t.Format("PM")
	case 'z':
		return t.Format("MST")
	case 'Z':
		return t.Format("-0700")
	case 'X':
		return t.Format([]string{"Z07", "Z0700", "Z07:00"}[min(p.width, 3)-1])
	}
	return padded(p.number(t))
}

// number is the value of the letters that stand for one.
func (p datePart) number(t time.Time) int {
	switch p.letter {
	case 'd':
		return t.Day()
	case 'H':
		return t.Hour()
	case 'k': // 1 to 24
		return (t.Hour()+23)%24 + 1
	case 'K': // 0 to 11
		return t.Hour() % 12
	case 'h': // 1 to 12
		return (t.Hour()+11)%12 + 1
	case 'm':
		return t.Minute()
	case 's':
		return t.Second()
	}
	return t.Nanosecond() / 1e6 // S
}
