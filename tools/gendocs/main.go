// Command gendocs writes the documents that are made from the source's own tables: docs/configuration.md from the broker's
// table of keys, docs/compatibility.md from the wire's table of APIs and the recorded run of tools/compat. A test fails when a
// document is not what it would write.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"millrace/broker"
	"millrace/tools/compat/sweep"
	"millrace/wire"
)

func main() {
	all, err := documents("docs")
	if err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
	for name, content := range all {
		if err := os.WriteFile(filepath.Join("docs", name), []byte(content), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gendocs:", err)
			os.Exit(1)
		}
	}
}

// documents are the contents of the made files in the folder docs, by name.
func documents(docs string) (map[string]string, error) {
	clients, err := compatibility(filepath.Join(docs, "compat-results.json"))
	if err != nil {
		return nil, err
	}
	return map[string]string{"configuration.md": configuration(), "compatibility.md": protocol() + sweep.Document() + clients}, nil
}

const made = "<!-- Made by `go run ./tools/gendocs`; do not edit. -->\n"

func protocol() string {
	var b strings.Builder
	b.WriteString("# Compatibility\n" + made + `
What Millrace speaks, and below it what [foreign clients, tools and frameworks](#clients-tools-and-frameworks) showed against it.

## Requests

Every request that Millrace serves, from the one table that also answers ApiVersions. A version or request that is not here is not
advertised; who sends it nevertheless has the connection closed, with a line in the log that names client, request and version.

| key | request | versions | flexible from |
|---|---|---|---|
`)
	for _, a := range wire.APIs {
		fmt.Fprintf(&b, "| %d | %s | %d–%d | %d |\n", a.Key, a.Name, a.Min, a.Max, a.FlexibleFrom)
	}
	return b.String()
}

func configuration() string {
	var b strings.Builder
	b.WriteString("# Configuration\n" + made + `
` + "`bin/millrace serve --config server.properties --override key=value`" + ` reads Kafka's keys. A bad value stops the start and names key, value
and range; a key nobody knows is warned about. *Dynamic* keys can be changed while the broker runs (AlterConfigs).

## Broker keys that Millrace acts on

| key | type | default | allowed | unit | dynamic | what |
|---|---|---|---|---|---|---|
`)
	var inert []broker.ConfigKey
	for _, k := range broker.ConfigKeys() {
		if k.Unsupported {
			inert = append(inert, k)
			continue
		}
		dynamic := ""
		if broker.Dynamic(k.Name) {
			dynamic = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", k.Name, typeName(k.Type), value(k.Default), cell(k.Range), cell(k.Unit), dynamic, cell(k.Text))
	}
	b.WriteString(`
## Topic settings

A topic setting that is not given takes its default from the first of the broker keys beside it that is set.

| key | type | default | allowed | from the broker's | what |
|---|---|---|---|---|---|
`)
	for _, k := range broker.TopicKeys() {
		text := cell(k.Text)
		switch {
		case k.Gone:
			text += " (removed in Kafka 4.0: accepted, without effect)"
		case k.Unread:
			text += " (checked and kept; nothing acts on it yet)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", k.Name, typeName(k.Type), value(k.Default), cell(k.Range), cell(strings.Join(k.Server, ", ")), text)
	}
	b.WriteString(`
## Settings of single groups

Set with ` + "`millrace config set group NAME key=value`" + ` or ` + "`kafka-configs.sh --entity-type groups`" + `; the group need not be there yet. They hold at
once, within the broker's ` + "`group.consumer.min.…`" + ` and ` + "`group.consumer.max.…`" + `. The settings of share and streams groups are kept, without effect.

| key | type | default | allowed | from the broker's | what |
|---|---|---|---|---|---|
`)
	for _, k := range broker.GroupKeys() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", k.Name, typeName(k.Type), value(k.Default), cell(k.Range), cell(strings.Join(k.Server, ", ")), cell(k.Text))
	}
	b.WriteString(`
## Subscriptions to clients' metrics

What clients push of their own metrics (KIP-714), for [/metrics](metrics.md): ` + "`millrace config set client-metrics NAME key=value`" + `.

| key | type | default | allowed | what |
|---|---|---|---|---|
`)
	for _, k := range broker.ClientMetricsKeys() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Name, typeName(k.Type), value(k.Default), cell(k.Range), cell(k.Text))
	}
	b.WriteString(`
## Levels of loggers

` + "`millrace config set broker-logger ID root=WARN`" + ` sets what the broker's loggers let through: TRACE, DEBUG, INFO, WARN, ERROR or FATAL. Those
that have no level of their own have the root's. As in Kafka, levels are those of ` + "`serve --log-level`" + ` again after a restart.

## Keys that Kafka knows and Millrace does not act on

They are accepted, with a line in the log that says why they have no effect.

| key | why |
|---|---|
`)
	for _, k := range inert {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k.Name, cell(k.Text))
	}
	return b.String()
}

func typeName(t broker.ConfigType) string { return strings.ToLower(fmt.Sprint(t)) }

func value(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}

// cell makes text fit for a table.
func cell(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", " ") }
