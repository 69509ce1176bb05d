import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Every call of the admin client that one broker without security has an answer for. */
class Admins {
    static Admin admin;
    static String bootstrap;
    static final TopicPartition A0 = new TopicPartition("a", 0), A1 = new TopicPartition("a", 1);

    static void run(String bootstrap) throws Exception {
        Admins.bootstrap = bootstrap;
        try (Admin a = Admin.create(Clients.props(bootstrap))) {
            admin = a;
            cluster();
            topics();
            configs();
            records();
            directories();
            quotas();
            leaders();
            groups();
            deletes();
        }
    }

    static void cluster() throws Exception {
        DescribeClusterResult c = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
        Clients.same("nodes", 1, c.nodes().get().size());
        Node n = c.nodes().get().iterator().next();
        Clients.same("node", "1 " + bootstrap, n.id() + " " + n.host() + ":" + n.port());
        Clients.same("controller", 1, c.controller().get().id());
        Clients.holds("cluster id", !c.clusterId().get().isEmpty());
        admin.describeFeatures().featureMetadata().get();
        Clients.ok("cluster");
    }

    static void topics() throws Exception {
        CreateTopicsResult made = admin.createTopics(List.of(new NewTopic("a", 2, (short) 1).configs(Map.of("retention.ms", "3600000")), new NewTopic("b", Optional.empty(), Optional.empty()),
            new NewTopic("placed", Map.of(0, List.of(1), 1, List.of(1)))));
        made.all().get();
        Clients.same("partitions made", 2, made.numPartitions("a").get());
        Clients.same("replicas made", 1, made.replicationFactor("a").get());
        Clients.same("setting made", "3600000", made.config("a").get().get("retention.ms").value());
        Clients.same("setting's source", ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, made.config("a").get().get("retention.ms").source());
        Clients.same("partitions by default", 1, made.numPartitions("b").get());
        admin.createTopics(List.of(new NewTopic("never", 1, (short) 1)), new CreateTopicsOptions().validateOnly(true)).all().get();
        Clients.same("topics", Set.of("a", "b", "placed"), admin.listTopics().names().get());
        Clients.fails("twice", TopicExistsException.class, () -> admin.createTopics(List.of(new NewTopic("a", 1, (short) 1))).all().get());
        Clients.fails("no such setting", InvalidConfigurationException.class, () -> admin.createTopics(List.of(new NewTopic("x", 1, (short) 1).configs(Map.of("nosuch", "1")))).all().get());
        Clients.fails("no partitions", InvalidPartitionsException.class, () -> admin.createTopics(List.of(new NewTopic("x", 0, (short) 1))).all().get());
        Throwable t = Clients.fails("two replicas", InvalidReplicationFactorException.class, () -> admin.createTopics(List.of(new NewTopic("x", 1, (short) 2))).all().get());
        Clients.holds("the message names the number: " + t.getMessage(), t.getMessage().contains("2"));
        Clients.fails("bad name", InvalidTopicException.class, () -> admin.createTopics(List.of(new NewTopic("x/y", 1, (short) 1))).all().get());

        TopicDescription d = admin.describeTopics(List.of("a"), new DescribeTopicsOptions().includeAuthorizedOperations(true)).allTopicNames().get().get("a");
        Clients.same("id", made.topicId("a").get(), d.topicId());
        Clients.same("partitions", 2, d.partitions().size());
        for (TopicPartitionInfo p : d.partitions()) Clients.same("leader, replicas, in sync", "1 1 1", p.leader().id() + " " + p.replicas().size() + " " + p.isr().size());
        Clients.same("by id", "a", admin.describeTopics(TopicCollection.ofTopicIds(List.of(d.topicId()))).allTopicIds().get().get(d.topicId()).name());
        Clients.fails("no such topic", UnknownTopicOrPartitionException.class, () -> admin.describeTopics(List.of("nosuch")).allTopicNames().get());
        Clients.fails("no such id", UnknownTopicIdException.class, () -> admin.describeTopics(TopicCollection.ofTopicIds(List.of(new Uuid(1, 2)))).allTopicIds().get());

        admin.createPartitions(Map.of("b", NewPartitions.increaseTo(7)), new CreatePartitionsOptions().validateOnly(true)).all().get();
        Clients.same("only looked at", 1, admin.describeTopics(List.of("b")).allTopicNames().get().get("b").partitions().size());
        admin.createPartitions(Map.of("b", NewPartitions.increaseTo(3), "placed", NewPartitions.increaseTo(3, List.of(List.of(1))))).all().get();
        Clients.same("grown", 3, admin.describeTopics(List.of("b")).allTopicNames().get().get("b").partitions().size());
        Clients.fails("fewer partitions", InvalidPartitionsException.class, () -> admin.createPartitions(Map.of("b", NewPartitions.increaseTo(2))).all().get());
        Clients.ok("topics");
    }

    static ConfigEntry setting(ConfigResource r, String name) throws Exception {
        return admin.describeConfigs(List.of(r), new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).all().get().get(r).get(name);
    }

    static void alter(ConfigResource r, AlterConfigOp.OpType op, String name, String value) throws Exception {
        admin.incrementalAlterConfigs(Map.of(r, List.of(new AlterConfigOp(new ConfigEntry(name, value), op)))).all().get();
    }

    static void configs() throws Exception {
        ConfigResource a = new ConfigResource(ConfigResource.Type.TOPIC, "a"), broker = new ConfigResource(ConfigResource.Type.BROKER, "1"), brokers = new ConfigResource(ConfigResource.Type.BROKER, "");
        ConfigEntry e = setting(a, "retention.ms");
        Clients.same("retention.ms", "3600000 LONG", e.value() + " " + e.type());
        Clients.holds("documentation", !e.documentation().isEmpty());
        e = setting(a, "segment.bytes");
        Clients.same("default", true, e.isDefault());
        Clients.same("synonyms", "log.segment.bytes DEFAULT_CONFIG", e.synonyms().get(0).name() + " " + e.synonyms().get(0).source());
        alter(a, AlterConfigOp.OpType.SET, "segment.bytes", "2097152");
        Clients.same("segment.bytes", "2097152", setting(a, "segment.bytes").value());
        alter(a, AlterConfigOp.OpType.DELETE, "segment.bytes", "");
        Clients.same("default again", true, setting(a, "segment.bytes").isDefault());
        alter(a, AlterConfigOp.OpType.SET, "leader.replication.throttled.replicas", "0:1");
        alter(a, AlterConfigOp.OpType.APPEND, "leader.replication.throttled.replicas", "1:1");
        Clients.same("appended", "0:1,1:1", setting(a, "leader.replication.throttled.replicas").value());
        alter(a, AlterConfigOp.OpType.SUBTRACT, "leader.replication.throttled.replicas", "0:1");
        Clients.same("subtracted", "1:1", setting(a, "leader.replication.throttled.replicas").value());
        alter(a, AlterConfigOp.OpType.DELETE, "leader.replication.throttled.replicas", "");
        admin.incrementalAlterConfigs(Map.of(a, List.of(new AlterConfigOp(new ConfigEntry("segment.bytes", "3000000"), AlterConfigOp.OpType.SET))), new AlterConfigsOptions().validateOnly(true)).all().get();
        Clients.same("only looked at", true, setting(a, "segment.bytes").isDefault());
        Throwable t = Clients.fails("bad value", InvalidConfigurationException.class, () -> { alter(a, AlterConfigOp.OpType.SET, "retention.ms", "soon"); return null; });
        Clients.holds("the message names setting and value: " + t.getMessage(), t.getMessage().contains("retention.ms") && t.getMessage().contains("soon"));
        Clients.fails("no such topic", UnknownTopicOrPartitionException.class, () -> { alter(new ConfigResource(ConfigResource.Type.TOPIC, "nosuch"), AlterConfigOp.OpType.SET, "retention.ms", "1"); return null; });

        alter(broker, AlterConfigOp.OpType.SET, "log.retention.ms", "7200000");
        e = setting(broker, "log.retention.ms");
        Clients.same("of the broker", "7200000 " + ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG, e.value() + " " + e.source());
        e = setting(a, "retention.ms");
        Clients.same("the topic's is nearer", "3600000", e.value());
        alter(broker, AlterConfigOp.OpType.DELETE, "log.retention.ms", "");
        alter(brokers, AlterConfigOp.OpType.SET, "log.retention.ms", "7300000");
        Clients.same("of all brokers", "7300000 " + ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, setting(broker, "log.retention.ms").value() + " " + setting(broker, "log.retention.ms").source());
        alter(brokers, AlterConfigOp.OpType.DELETE, "log.retention.ms", "");
        Clients.same("read only", true, setting(broker, "log.dirs").isReadOnly());
        Clients.fails("read only", InvalidRequestException.class, () -> { alter(broker, AlterConfigOp.OpType.SET, "log.dirs", "/elsewhere"); return null; });
        Clients.ok("settings");
    }

    static long offset(TopicPartition tp, OffsetSpec spec, IsolationLevel level) throws Exception {
        ListOffsetsResultInfo i = admin.listOffsets(Map.of(tp, spec), new ListOffsetsOptions(level)).partitionResult(tp).get();
        return i.offset();
    }

    static void records() throws Exception {
        try (KafkaProducer<String, String> p = new KafkaProducer<>(Clients.props(bootstrap), new StringSerializer(), new StringSerializer())) {
            long now = System.currentTimeMillis() - 100_000;
            for (int i = 0; i < 10; i++) p.send(new ProducerRecord<>("a", 0, now + i * 1000, null, "v" + i)).get();
            Clients.same("earliest", 0L, offset(A0, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED));
            Clients.same("latest", 10L, offset(A0, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED));
            Clients.same("latest, committed", 10L, offset(A0, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED));
            Clients.same("at a time", 4L, offset(A0, OffsetSpec.forTimestamp(now + 3500), IsolationLevel.READ_UNCOMMITTED));
            Clients.same("after all", -1L, offset(A0, OffsetSpec.forTimestamp(now + 100_000), IsolationLevel.READ_UNCOMMITTED));
            Clients.same("newest time", 9L, offset(A0, OffsetSpec.maxTimestamp(), IsolationLevel.READ_UNCOMMITTED));
            Clients.same("empty", -1L, offset(A1, OffsetSpec.maxTimestamp(), IsolationLevel.READ_UNCOMMITTED));
            ProducerState s = admin.describeProducers(List.of(A0)).partitionResult(A0).get().activeProducers().get(0);
            Clients.same("producer", "9 0", s.lastSequence() + " " + s.producerEpoch());
            Clients.holds("producer's time", s.lastTimestamp() > now);
        }
        Clients.same("low mark", 4L, admin.deleteRecords(Map.of(A0, RecordsToDelete.beforeOffset(4))).lowWatermarks().get(A0).get().lowWatermark());
        Clients.same("earliest now", 4L, offset(A0, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED));
        Clients.fails("past the end", OffsetOutOfRangeException.class, () -> admin.deleteRecords(Map.of(A0, RecordsToDelete.beforeOffset(11))).all().get());
        Clients.ok("records and offsets");
    }

    static void directories() throws Exception {
        LogDirDescription d = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).values().iterator().next();
        Clients.same("error", null, d.error());
        Clients.holds("size of a-0: " + d.replicaInfos().get(A0), d.replicaInfos().get(A0).size() > 0 && !d.replicaInfos().get(A0).isFuture() && d.replicaInfos().get(A0).offsetLag() == 0);
        Clients.holds("room: " + d.usableBytes() + " of " + d.totalBytes(), d.totalBytes().getAsLong() > d.usableBytes().getAsLong());
        TopicPartitionReplica r = new TopicPartitionReplica("a", 0, 1);
        Clients.holds("a-0's directory", admin.describeReplicaLogDirs(List.of(r)).all().get().get(r).getCurrentReplicaLogDir() != null);
        Clients.ok("log directories");
    }

    static void quotas() throws Exception {
        ClientQuotaEntity app = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "app"));
        Map<String, String> nobody = new HashMap<>();
        nobody.put(ClientQuotaEntity.CLIENT_ID, null);
        ClientQuotaEntity all = new ClientQuotaEntity(nobody);
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(app, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6), new ClientQuotaAlteration.Op("consumer_byte_rate", 2e6))),
            new ClientQuotaAlteration(all, List.of(new ClientQuotaAlteration.Op("request_percentage", 150.0))))).all().get();
        Clients.same("of app", Map.of(app, Map.of("producer_byte_rate", 1e6, "consumer_byte_rate", 2e6)),
            admin.describeClientQuotas(ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, "app")))).entities().get());
        Clients.same("of the others", Map.of(all, Map.of("request_percentage", 150.0)),
            admin.describeClientQuotas(ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofDefaultEntity(ClientQuotaEntity.CLIENT_ID)))).entities().get());
        Clients.same("all", 2, admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().size());
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(app, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", null)))), new AlterClientQuotasOptions().validateOnly(true)).all().get();
        Clients.same("only looked at", 2, admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().get(app).size());
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(app, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", null), new ClientQuotaAlteration.Op("consumer_byte_rate", null))),
            new ClientQuotaAlteration(all, List.of(new ClientQuotaAlteration.Op("request_percentage", null))))).all().get();
        Clients.same("none", Map.of(), admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
        Clients.fails("no such quota", InvalidRequestException.class, () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(app, List.of(new ClientQuotaAlteration.Op("nosuch", 1.0))))).all().get());
        Clients.ok("quotas");
    }

    static void leaders() throws Exception {
        Map<TopicPartition, Optional<Throwable>> e = admin.electLeaders(ElectionType.PREFERRED, Set.of(A0)).partitions().get();
        Clients.holds("elected already: " + e, e.isEmpty() || e.get(A0).get() instanceof ElectionNotNeededException);
        admin.alterPartitionReassignments(Map.of(A0, Optional.of(new NewPartitionReassignment(List.of(1))))).all().get();
        Clients.same("reassignments", Map.of(), admin.listPartitionReassignments().reassignments().get());
        Clients.fails("to nobody", InvalidReplicaAssignmentException.class, () -> admin.alterPartitionReassignments(Map.of(A0, Optional.of(new NewPartitionReassignment(List.of(9))))).all().get());
        Clients.fails("none to cancel", NoReassignmentInProgressException.class, () -> admin.alterPartitionReassignments(Map.of(A0, Optional.empty())).all().get());
        Clients.ok("leaders and reassignments");
    }

    static KafkaConsumer<String, String> consumer(String group, String... set) {
        java.util.Properties p = Clients.props(bootstrap, "group.id", group, "client.id", "me", "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        for (int i = 0; i < set.length; i += 2) p.put(set[i], set[i + 1]);
        return new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer());
    }

    static ConsumerGroupDescription describe(String group) throws Exception {
        return admin.describeConsumerGroups(List.of(group)).all().get().get(group);
    }

    static void groups() throws Exception {
        try (KafkaConsumer<String, String> c = consumer("old", "group.instance.id", "i1"); KafkaConsumer<String, String> n = consumer("new", "group.protocol", "consumer")) {
            for (KafkaConsumer<String, String> k : List.of(c, n)) {
                k.subscribe(List.of("a"));
                List<String> got = new ArrayList<>();
                Clients.until("six records", () -> {
                    for (ConsumerRecord<String, String> r : k.poll(Duration.ofMillis(100))) got.add(r.value());
                    return got.size() == 6;
                });
                Clients.same("records", List.of("v4", "v5", "v6", "v7", "v8", "v9"), got);
                k.commitSync(Map.of(A0, new OffsetAndMetadata(7, Optional.of(0), "seven")));
            }
            Set<String> ids = new TreeSet<>();
            for (ConsumerGroupListing g : admin.listConsumerGroups().all().get()) ids.add(g.groupId() + " " + g.isSimpleConsumerGroup());
            Clients.same("groups", Set.of("new false", "old false"), ids);
            ConsumerGroupDescription d = describe("old");
            MemberDescription m = d.members().iterator().next();
            Clients.same("old", "range Stable 1 i1 me /127.0.0.1 " + Set.of(A0, A1), d.partitionAssignor() + " " + d.state() + " " + d.coordinator().id() + " " + m.groupInstanceId().get() + " " + m.clientId() + " " + m.host() + " " + partitions(m));
            Clients.same("old's type", "Classic", d.type().toString());
            d = describe("new");
            m = d.members().iterator().next();
            Clients.same("new", "uniform Stable 1 me /127.0.0.1 " + Set.of(A0, A1), d.partitionAssignor() + " " + d.state() + " " + d.coordinator().id() + " " + m.clientId() + " " + m.host() + " " + partitions(m));
            Clients.same("new's type", "Consumer", d.type().toString());
            Clients.fails("not empty", GroupNotEmptyException.class, () -> admin.deleteConsumerGroups(List.of("old")).all().get());
            Clients.fails("subscribed", GroupSubscribedToTopicException.class, () -> admin.deleteConsumerGroupOffsets("old", Set.of(A0)).partitionResult(A0).get());
            Clients.fails("has members", UnknownMemberIdException.class, () -> admin.alterConsumerGroupOffsets("old", Map.of(A0, new OffsetAndMetadata(5))).all().get());
            admin.removeMembersFromConsumerGroup("old", new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("i1")))).all().get();
            Clients.same("old, its member removed", 0, describe("old").members().size());
        }
        Map<TopicPartition, OffsetAndMetadata> o = admin.listConsumerGroupOffsets("old").partitionsToOffsetAndMetadata().get();
        Clients.same("offset", new OffsetAndMetadata(7, Optional.of(0), "seven"), o.get(A0));
        Clients.same("offsets of several", 7L, admin.listConsumerGroupOffsets(Map.of("old", new ListConsumerGroupOffsetsSpec(), "new", new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(A0)))).all().get().get("new").get(A0).offset());
        admin.alterConsumerGroupOffsets("old", Map.of(A0, new OffsetAndMetadata(5), A1, new OffsetAndMetadata(0))).all().get();
        admin.deleteConsumerGroupOffsets("old", Set.of(A1)).all().get();
        o = admin.listConsumerGroupOffsets("old").partitionsToOffsetAndMetadata().get();
        Clients.same("changed", Map.of(A0, 5L), Map.of(A0, o.get(A0).offset()));
        Clients.holds("deleted: " + o, o.get(A1) == null);
        admin.deleteConsumerGroups(List.of("old", "new")).all().get();
        Clients.same("groups left", 0, admin.listConsumerGroups().all().get().size());
        Clients.fails("no such group", GroupIdNotFoundException.class, () -> admin.deleteConsumerGroups(List.of("old")).all().get());
        Clients.ok("groups");
    }

    /** A member's partitions, in the order that a set of both prints in. */
    static String partitions(MemberDescription m) {
        Set<TopicPartition> both = Set.of(A0, A1);
        return (m.assignment().topicPartitions().equals(both) ? both : m.assignment().topicPartitions()).toString();
    }

    static void deletes() throws Exception {
        Uuid id = admin.describeTopics(List.of("b")).allTopicNames().get().get("b").topicId();
        admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
        admin.deleteTopics(List.of("a", "placed")).all().get();
        Clients.same("topics left", Set.of(), admin.listTopics().names().get());
        Clients.fails("no such topic", UnknownTopicOrPartitionException.class, () -> admin.deleteTopics(List.of("a")).all().get());
        Clients.fails("no such id", UnknownTopicIdException.class, () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get());
        Clients.ok("deletes");
    }
}
