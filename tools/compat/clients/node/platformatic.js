// Drives @platformatic/kafka.
'use strict'
const report = require('./report')

let lib // the module, which is an ES module

const options = bootstrap => ({ clientId: 'compat', bootstrapBrokers: [bootstrap], retries: 5 })

const message = (topic, r) => ({ topic, partition: 0, key: r.key, value: r.value, headers: new Map(r.headers.map(([k, v]) => [Buffer.from(k), v])), timestamp: BigInt(r.ms) })

async function produce (bootstrap, a) {
  const p = new lib.Producer({ ...options(bootstrap), idempotent: a.idempotent, compression: a.codec, ...(a.idempotent ? {} : { acks: -1 }) })
  const all = report.records(a.file).map(r => message(a.topic, r))
  for (const m of all.slice(0, a.single)) await p.send({ messages: [m] })
  await p.send({ messages: all.slice(a.single) })
  await p.close()
}

const got = m => report.got(m.topic, m.partition, m.offset, m.key, m.value, [...m.headers.entries()], m.timestamp)

async function consume (bootstrap, a) {
  const c = new lib.Consumer({ ...options(bootstrap), groupId: 'all-' + process.pid, maxBytesPerPartition: 4 << 20, maxBytes: 16 << 20, maxWaitTime: 100 })
  const left = { ...a.topics }
  const stream = await c.consume({ topics: Object.keys(left), mode: 'earliest', autocommit: false })
  for await (const m of stream) {
    if (m.partition !== 0 || left[m.topic] === 0) continue
    got(m)
    left[m.topic]--
    if (Object.values(left).every(n => n === 0)) break
  }
  await c.close(true)
}

async function limit (bootstrap, a) {
  const p = new lib.Producer({ ...options(bootstrap), acks: -1 })
  for (const [name, size] of [['fits', a.fit], ['over', a.over]]) {
    await p.send({ messages: [message(a.topic, { key: null, value: Buffer.alloc(size), headers: [], ms: 1 })] }).then(() => report.step(name), e => report.step(name, e))
  }
  await p.close()
}

async function member (bootstrap, a) {
  const classic = { sessionTimeout: 6000, heartbeatInterval: 500, rebalanceTimeout: 10000 }
  const c = new lib.Consumer({ ...options(bootstrap), groupId: a.group, maxWaitTime: 200, retries: true, retryDelay: 200, ...(a.protocol === 'classic' ? classic : { groupProtocol: 'consumer' }) })
  const stream = await c.consume({ topics: [a.topic], mode: 'committed', fallbackMode: 'earliest', autocommit: false })
  stream.on('error', e => report.step('note', e))
  stream.on('data', m => {
    got(m)
    Promise.resolve(m.commit()).catch(e => report.step('note', e))
  })
  await report.stopped
  await c.close(true)
}

async function topicAdmin (c, bootstrap) {
  const TOPIC = 2
  const partitions = async () => {
    const base = new lib.Base(options(bootstrap))
    const m = await base.metadata({ topics: ['made'] })
    await base.close()
    return m.topics.get('made').partitionsCount
  }
  const retention = async () => (await c.describeConfigs({ resources: [{ resourceType: TOPIC, resourceName: 'made', configurationKeys: ['retention.ms'] }] }))[0].configs[0].value
  await c.createTopics({ topics: ['made'], partitions: 3, replicas: 1, configs: [{ name: 'retention.ms', value: '12345678' }] })
  report.must('create topic')
  report.want('describe topic', await partitions(), 3)
  report.want('describe config', await retention(), '12345678')
  await c.incrementalAlterConfigs({ resources: [{ resourceType: TOPIC, resourceName: 'made', configs: [{ name: 'retention.ms', configOperation: 0, value: '7654321' }] }] })
  report.want('alter config', await retention(), '7654321')
  await c.createPartitions({ topics: [{ name: 'made', count: 5, assignments: null }] })
  report.want('add partitions', await partitions(), 5)
  await c.deleteTopics({ topics: ['made'] })
  report.want('delete topic', (await c.listTopics()).includes('made'), false)
}

async function admin (bootstrap, a) {
  const c = new lib.Admin(options(bootstrap))
  await topicAdmin(c, bootstrap)
  const offset = async timestamp => (await c.listOffsets({ topics: [{ name: a.topic, partitions: [{ partitionIndex: 0, timestamp }] }] }))[0].partitions[0].offset
  report.want('list offsets', await offset(-1n), 10)
  await c.deleteRecords({ topics: [{ name: a.topic, partitions: [{ partition: 0, offset: 3n }] }] })
  report.want('delete records', await offset(-2n), 3)
  report.want('list groups', [...(await c.listGroups()).keys()].join(), a.group)
  report.want('describe group', (await c.describeGroups({ groups: [a.group] })).get(a.group).state, 'EMPTY')
  const committed = async () => (await c.listConsumerGroupOffsets({ groups: [a.group] }))[0].topics[0].partitions[0].committedOffset
  report.want("group's offsets", await committed(), 4)
  await c.alterConsumerGroupOffsets({ groupId: a.group, topics: [{ name: a.topic, partitionOffsets: [{ partition: 0, offset: 6n }] }] })
  report.want("alter group's offsets", await committed(), 6)
  await c.deleteGroups({ groups: [a.group] })
  report.want('delete group', [...(await c.listGroups()).keys()].join(), '')
  await c.close()
}

async function transaction (bootstrap, a) {
  const p = new lib.Producer({ ...options(bootstrap), idempotent: true, transactionalId: 't1', retries: 2 })
  for (const commit of [true, false]) {
    const t = await p.beginTransaction()
    for (const v of ['1', '2', '3']) await t.send({ messages: [{ topic: a.topic, partition: 0, value: Buffer.from(v) }] })
    await (commit ? t.commit() : t.abort())
  }
  await p.close()
  report.must('transactions')
}

import('@platformatic/kafka').then(m => { lib = m; report.main({ produce, consume, limit, member, admin, transaction }) })
