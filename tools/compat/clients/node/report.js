// What the Node programs share: how the checks ask for an act, and the JSON lines they get back (see go/report).
'use strict'
const crypto = require('node:crypto')
const fs = require('node:fs')

function line (what) {
  fs.writeSync(1, JSON.stringify(what) + '\n')
}

function words (error) {
  let text = `${error.name}: ${error.message}`
  for (const e of error.errors ?? []) text += ' / ' + words(e)
  if (error.cause) text += ' / ' + words(error.cause)
  return text
}

function step (name, error, detail = '') {
  line({ step: name, ok: !error, detail: error ? words(error) : String(detail) })
}

function must (name, error, detail) {
  step(name, error, detail)
  if (error) process.exit(1)
}

function want (name, got, wanted) {
  const [g, w] = [String(got), String(wanted)]
  must(name, g === w ? null : new Error(`got ${g}, want ${w}`), g)
}

function show (b) {
  if (b === null || b === undefined) return null
  if (b.length > 64) return `sha256:${crypto.createHash('sha256').update(b).digest('hex')}:${b.length}`
  return Buffer.from(b).toString('base64')
}

// headers is a list of [key, value].
function got (topic, partition, offset, key, value, headers, ms) {
  line({ step: 'got', ok: true, topic, p: partition, o: Number(offset), k: show(key), v: show(value), h: headers.map(([k, v]) => [String(k), show(v)]), t: Number(ms) })
}

const unpack = s => s === null ? null : Buffer.from(s, 'base64')

// records are those of a produce act's file.
function records (path) {
  return fs.readFileSync(path, 'utf8').trim().split('\n').map(text => {
    const r = JSON.parse(text)
    return { key: unpack(r.k), value: unpack(r.v), headers: (r.h ?? []).map(h => [h.k, unpack(h.v)]), ms: r.t }
  })
}

// stopped is settled by SIGTERM.
const stopped = new Promise(resolve => process.once('SIGTERM', resolve))

function main (acts) {
  const [act, bootstrap, text] = process.argv.slice(2)
  acts[act](bootstrap, JSON.parse(text)).then(() => { must('end'); process.exit(0) }, e => must('end', e))
}

module.exports = { step, must, want, got, records, stopped, main }
