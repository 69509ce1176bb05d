package wire

// Bodies of the requests of consumer groups, in wire order.
var (
	offsetCommitShape = []field{
		str(), fixed(4).since(1), str().since(1), str().since(7), fixed(8).in(2, 4),
		structs(str().in(0, 9), fixed(16).since(10),
			structs(fixed(4), fixed(8), fixed(8).in(1, 1), fixed(4).since(6), str())),
	}

	offsetFetchShape = []field{
		str().in(0, 7), structs(str(), plain(fixed(4))).in(0, 7),
		structs(str(), str().since(9), fixed(4).since(9),
			structs(str().in(8, 9), fixed(16).since(10), plain(fixed(4)))).since(8),
		fixed(1).since(7),
	}

	offsetDeleteShape = []field{str(), structs(str(), structs(fixed(4)))}

	findCoordinatorShape = []field{str().in(0, 3), fixed(1).since(1), plain(str()).since(4)}

	joinGroupShape = []field{
		str(), fixed(4), fixed(4).since(1), str(), str().since(5), str(),
		structs(str(), blob()), str().since(8),
	}

	syncGroupShape = []field{
		str(), fixed(4), str(), str().since(3), str().since(5), str().since(5),
		structs(str(), blob()),
	}

	heartbeatShape = []field{str(), fixed(4), str(), str().since(3)}

	leaveGroupShape = []field{
		str(), str().in(0, 2), structs(str(), str(), str().since(5)).since(3),
	}

	describeGroupsShape = []field{plain(str()), fixed(1).since(3)}

	listGroupsShape = []field{plain(str()).since(4), plain(str()).since(5)}

	deleteGroupsShape = []field{plain(str())}

	consumerGroupHeartbeatShape = []field{
		str(), str(), fixed(4), str(), str(), fixed(4), plain(str()), str().since(1), str(),
		structs(fixed(16), plain(fixed(4))),
	}

	consumerGroupDescribeShape = []field{plain(str()), fixed(1)}
)
