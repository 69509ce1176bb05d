// Package output writes what commands answer: tables for people, tab-separated
// lines for scripts, JSON for programs, and progress for whoever waits.
package output

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// IsTerminal says whether w is a terminal. Anything that is not a file is not.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Table is a head and rows of text.
type Table struct {
	Title   string // shown on a terminal only
	Head    []string
	Rows    [][]string
	Numbers []string // the columns to set flush right on a terminal
}

// Add appends one row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write draws the table on a terminal. Anywhere else it writes one line a row,
// tab-separated and without a head, so that cut and awk need no option.
func (t *Table) Write(w io.Writer) error {
	if !IsTerminal(w) {
		return t.writePlain(w)
	}
	width := 0
	if f, ok := w.(*os.File); ok {
		width, _, _ = term.GetSize(int(f.Fd())) // 0 if it does not say: no limit
	}
	_, err := io.WriteString(w, t.drawn(width)+"\n")
	return err
}

// narrowest is what a column is not made narrower than; a number should stay whole.
const narrowest = 12

// fit says how wide each column may be so that the table is no wider than width: the
// widest give way first, and their cells are broken into lines. 0 is no limit.
func (t *Table) fit(width int) []int {
	widths := make([]int, len(t.Head))
	total := 1
	for i, name := range t.Head {
		widths[i] = text.StringWidthWithoutEscSequences(name)
		for _, row := range t.Rows {
			if i < len(row) {
				widths[i] = max(widths[i], text.LongestLineLen(row[i]))
			}
		}
		total += widths[i] + 3 // the frame and a blank on each side
	}
	for width > 0 && total > width {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}

func (t *Table) writePlain(w io.Writer) error {
	var b strings.Builder
	for _, row := range t.Rows {
		for i, cell := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(plainCell.Replace(cell))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// plainCell keeps a cell from breaking the line it stands in.
var plainCell = strings.NewReplacer("\t", " ", "\n", " ")

func (t *Table) drawn(width int) string {
	w := table.NewWriter()
	w.SetStyle(table.StyleRounded)
	w.Style().Options.SeparateRows = false
	w.Style().Format.Header = text.FormatDefault
	if t.Title != "" {
		w.SetTitle(t.Title)
	}
	w.AppendHeader(cells(t.Head))
	for _, row := range t.Rows {
		w.AppendRow(cells(row))
	}
	var columns []table.ColumnConfig
	for i, most := range t.fit(width) {
		c := table.ColumnConfig{Number: i + 1, WidthMax: most, WidthMaxEnforcer: text.WrapHard}
		if slices.Contains(t.Numbers, t.Head[i]) {
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}
		columns = append(columns, c)
	}
	w.SetColumnConfigs(columns)
	return w.Render()
}

func cells(row []string) table.Row {
	out := make(table.Row, len(row))
	for i, cell := range row {
		out[i] = cell
	}
	return out
}

// JSON writes v as one indented JSON document.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// JSONFile writes v to the named file; "-" is standard output.
func JSONFile(name string, v any) error {
	if name == "-" {
		return JSON(os.Stdout, v)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := JSON(f, v); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
