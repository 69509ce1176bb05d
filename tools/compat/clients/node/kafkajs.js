// Drives kafkajs. The codecs it does not bring come from the packages that its documentation has users plug in.
'use strict'
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')
const snappy = require('snappyjs')
const lz4 = require('lz4-napi')
const zstd = require('@bokuweb/zstd-wasm')
const report = require('./report')

const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0])

// unframe undoes the blocks that Java's Snappy library puts around the data.
function unframe (b) {
  if (b.length < 16 || !b.subarray(0, 8).equals(XERIAL)) return Buffer.from(snappy.uncompress(b))
  const parts = []
  for (let at = 16; at < b.length;) {
    const n = b.readInt32BE(at)
    parts.push(Buffer.from(snappy.uncompress(b.subarray(at + 4, at + 4 + n))))
    at += 4 + n
  }
  return Buffer.concat(parts)
}

CompressionCodecs[CompressionTypes.Snappy] = () => ({ compress: async e => Buffer.from(snappy.compress(e.buffer)), decompress: async b => unframe(b) })
CompressionCodecs[CompressionTypes.LZ4] = () => ({ compress: async e => lz4.compressFrameSync(e.buffer), decompress: async b => lz4.decompressFrameSync(b) })
CompressionCodecs[CompressionTypes.ZSTD] = () => ({ compress: async e => Buffer.from(zstd.compress(e.buffer)), decompress: async b => Buffer.from(zstd.decompress(b)) })
const codecs = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 }

const client = bootstrap => new Kafka({ clientId: 'compat', brokers: [bootstrap], logLevel: logLevel.NOTHING })

function message (r) {
  const headers = {}
  for (const [k, v] of r.headers) headers[k] = k in headers ? [headers[k], v].flat() : v
  return { partition: 0, key: r.key, value: r.value, headers, timestamp: String(r.ms) }
}

async function produce (bootstrap, a) {
  const p = client(bootstrap).producer({ idempotent: a.idempotent, maxInFlightRequests: 1 })
  await p.connect()
  const all = report.records(a.file).map(message)
  for (const m of all.slice(0, a.single)) await p.send({ topic: a.topic, compression: codecs[a.codec], messages: [m] })
  await p.send({ topic: a.topic, compression: codecs[a.codec], messages: all.slice(a.single) })
  await p.disconnect()
}

function got (topic, partition, m) {
  const headers = Object.entries(m.headers ?? {}).flatMap(([k, v]) => Array.isArray(v) ? v.map(x => [k, x]) : [[k, v]])
  report.got(topic, partition, m.offset, m.key, m.value, headers, m.timestamp)
}

async function consume (bootstrap, a) {
  const c = client(bootstrap).consumer({ groupId: 'all-' + process.pid, maxBytesPerPartition: 4 << 20 })
  await c.connect()
  const left = { ...a.topics }
  await c.subscribe({ topics: Object.keys(left), fromBeginning: true })
  const done = new Promise((resolve, reject) => {
    c.on(c.events.CRASH, e => reject(e.payload.error))
    c.run({
      eachMessage: async ({ topic, partition, message }) => {
        if (partition !== 0 || left[topic] === 0) return
        got(topic, partition, message)
        left[topic]--
        if (Object.values(left).every(n => n === 0)) resolve()
      }
    }).catch(reject)
  })
  await done
  await c.disconnect()
}

async function limit (bootstrap, a) {
  const p = client(bootstrap).producer()
  await p.connect()
  for (const [name, size] of [['fits', a.fit], ['over', a.over]]) {
    await p.send({ topic: a.topic, messages: [{ partition: 0, value: Buffer.alloc(size), timestamp: '1' }] }).then(() => report.step(name), e => report.step(name, e))
  }
  await p.disconnect()
}

async function member (bootstrap, a) {
  const c = client(bootstrap).consumer({ groupId: a.group, sessionTimeout: 6000, heartbeatInterval: 500, maxWaitTimeInMs: 200, retry: { retries: 50, maxRetryTime: 1000 } })
  c.on(c.events.CRASH, e => report.step('note', e.payload.error))
  await c.connect()
  await c.subscribe({ topics: [a.topic], fromBeginning: true })
  await c.run({
    autoCommit: false,
    eachMessage: async ({ topic, partition, message }) => {
      got(topic, partition, message)
      await c.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }])
    }
  })
  await report.stopped
  await c.disconnect()
}

async function topicAdmin (c) {
  const partitions = async () => (await c.fetchTopicMetadata({ topics: ['made'] })).topics[0].partitions.length
  const retention = async () => (await c.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: 'made', configNames: ['retention.ms'] }] })).resources[0].configEntries[0].configValue
  await c.createTopics({ topics: [{ topic: 'made', numPartitions: 3, configEntries: [{ name: 'retention.ms', value: '12345678' }] }] })
  report.must('create topic')
  report.want('describe topic', await partitions(), 3)
  report.want('describe config', await retention(), '12345678')
  await c.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: 'made', configEntries: [{ name: 'retention.ms', value: '7654321' }] }] })
  report.want('alter config', await retention(), '7654321')
  await c.createPartitions({ topicPartitions: [{ topic: 'made', count: 5 }] })
  report.want('add partitions', await partitions(), 5)
  await c.deleteTopics({ topics: ['made'] })
  report.want('delete topic', (await c.listTopics()).includes('made'), false)
}

async function admin (bootstrap, a) {
  const c = client(bootstrap).admin()
  await c.connect()
  await topicAdmin(c)
  const offsets = async () => (await c.fetchTopicOffsets(a.topic)).find(p => p.partition === 0)
  report.want('list offsets', (await offsets()).high, 10)
  await c.deleteTopicRecords({ topic: a.topic, partitions: [{ partition: 0, offset: '3' }] })
  report.want('delete records', (await offsets()).low, 3)
  const groups = async () => (await c.listGroups()).groups.map(g => g.groupId).join()
  report.want('list groups', await groups(), a.group)
  report.want('describe group', (await c.describeGroups([a.group])).groups[0].state, 'Empty')
  const committed = async () => (await c.fetchOffsets({ groupId: a.group, topics: [a.topic] }))[0].partitions.find(p => p.partition === 0).offset
  report.want("group's offsets", await committed(), 4)
  await c.setOffsets({ groupId: a.group, topic: a.topic, partitions: [{ partition: 0, offset: '6' }] })
  report.want("alter group's offsets", await committed(), 6)
  await c.deleteGroups([a.group])
  report.want('delete group', await groups(), '')
  await c.disconnect()
}

async function transaction (bootstrap, a) {
  const p = client(bootstrap).producer({ transactionalId: 't1', idempotent: true, maxInFlightRequests: 1, retry: { retries: 2 } })
  await p.connect()
  for (const commit of [true, false]) {
    const t = await p.transaction()
    for (const value of ['1', '2', '3']) await t.send({ topic: a.topic, messages: [{ partition: 0, value }] })
    await (commit ? t.commit() : t.abort())
  }
  await p.disconnect()
  report.must('transactions')
}

zstd.init().then(() => report.main({ produce, consume, limit, member, admin, transaction }))
