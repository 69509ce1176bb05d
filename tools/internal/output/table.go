// Package output writes what commands answer: tables for people, tab-separated
// lines for scripts, JSON for programs, and progress for whoever waits.
package output

import (
	"encoding/json"
	"io"
	"os"
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
	_, err := io.WriteString(w, t.drawn()+"\n")
	return err
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

func (t *Table) drawn() string {
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
	for _, name := range t.Numbers {
		columns = append(columns, table.ColumnConfig{Name: name, Align: text.AlignRight, AlignHeader: text.AlignRight})
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
