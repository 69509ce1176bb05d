package wire

// Bodies of the admin requests, in wire order.
var (
	deleteRecordsShape = []field{
		structs(str(), structs(fixed(4), fixed(8))), fixed(4),
	}

	offsetForLeaderEpochShape = []field{
		fixed(4).since(3),
		structs(str(), structs(fixed(4), fixed(4).since(2), fixed(4))),
	}

	alterConfigsShape = []field{
		structs(fixed(1), str(), structs(str(), str())), fixed(1),
	}

	alterReplicaLogDirsShape = []field{structs(str(), structs(str(), plain(fixed(4))))}

	describeLogDirsShape = []field{structs(str(), plain(fixed(4)))}

	createPartitionsShape = []field{
		structs(str(), fixed(4), structs(plain(fixed(4)))), fixed(4), fixed(1),
	}

	electLeadersShape = []field{
		fixed(1).since(1), structs(str(), plain(fixed(4))), fixed(4),
	}

	incrementalAlterConfigsShape = []field{
		structs(fixed(1), str(), structs(str(), fixed(1), str())), fixed(1),
	}

	alterPartitionReassignmentsShape = []field{
		fixed(4), fixed(1).since(1),
		structs(str(), structs(fixed(4), plain(fixed(4)))),
	}

	listPartitionReassignmentsShape = []field{
		fixed(4), structs(str(), plain(fixed(4))),
	}

	describeClientQuotasShape = []field{structs(str(), fixed(1), str()), fixed(1)}

	alterClientQuotasShape = []field{
		structs(structs(str(), str()), structs(str(), fixed(8), fixed(1))), fixed(1),
	}

	describeClusterShape = []field{fixed(1), fixed(1).since(1), fixed(1).since(2)}

	describeProducersShape = []field{structs(str(), plain(fixed(4)))}

	listConfigResourcesShape = []field{plain(fixed(1)).since(1)}

	getTelemetrySubscriptionsShape = []field{fixed(16)}

	pushTelemetryShape = []field{fixed(16), fixed(4), fixed(1), fixed(1), blob()}

	describeTopicPartitionsShape = []field{
		structs(str()), fixed(4), nullable(str(), fixed(4)),
	}
)
