package broker

import (
	"errors"
	"fmt"

	"millrace/engine"
	"millrace/engine/batch"
	"millrace/engine/producers"
	"millrace/replica"
	"millrace/wire"
)

// This file alone turns errors of the rooms below into the protocol's codes.

// codedError is an error of this package's own that has a code.
type codedError struct {
	code    int16
	message string
}

func (e *codedError) Error() string { return e.message }

// Errors that handlers find themselves.
var (
	errBadAcks        = &codedError{wire.ErrInvalidRequiredAcks, "acks must be -1 (all), 0 or 1"}
	errUnknownTopic   = &codedError{wire.ErrUnknownTopicOrPartition, "no such topic or partition"}
	errUnknownTopicID = &codedError{wire.ErrUnknownTopicID, "no topic has this id"}
	errInternalTopic  = &codedError{wire.ErrInvalidTopic, "clients may not write to an internal topic"}
	errNoBatch        = &codedError{wire.ErrInvalidRecord, "the records are not one whole record batch of format 2"}
	errManyBatches    = &codedError{wire.ErrInvalidRecord, "only one record batch for each partition is allowed in a request"}
	errZstdTooOld     = &codedError{wire.ErrUnsupportedCompressionType, "zstd needs Produce version 7 or newer"}
	errZstdReader     = &codedError{wire.ErrUnsupportedCompressionType, "the records are compressed with zstd, which needs Fetch version 10 or newer"}
	errNoTransactions = &codedError{wire.ErrInvalidTxnState, "transactions are not built yet"}
	errDuplicatePart  = &codedError{wire.ErrInvalidRequest, "the partition is named twice"}
	errTimestampKind  = &codedError{wire.ErrUnsupportedVersion, "this special timestamp needs a newer ListOffsets version"}
	errNotReplica     = &codedError{wire.ErrNotLeaderOrFollower, "the fetching broker holds no replica of this partition"}
	errUnknownEpoch   = &codedError{wire.ErrUnknownLeaderEpoch, "the fetching broker holds no replica of this partition yet"}
)

// recompressedTooLargeError: a batch was small enough as sent and is not as stored.
type recompressedTooLargeError struct {
	size, max int
	codec     batch.Codec
}

func (e *recompressedTooLargeError) Error() string {
	return fmt.Sprintf("the batch has %d bytes after compression with %s (compression.type), max.message.bytes is %d", e.size, e.codec, e.max)
}

// failure is an error as the protocol tells it.
type failure struct {
	code    int16
	message string
	records []wire.RecordError
	serious bool // ours to fix, not the client's: belongs in the log
}

// codeFor maps codes that old versions of an API do not know.
func (f *failure) codeFor(key, version int16) int16 {
	old := key == wire.KeyProduce && version < 4 || key == wire.KeyFetch && version < 6
	if old && f.code == wire.ErrKafkaStorageError {
		return wire.ErrNotLeaderOrFollower
	}
	return f.code
}

// failureOf finds an error's code and what to tell the client.
func failureOf(err error) failure {
	f := failure{code: codeOf(err), message: err.Error()}
	var refused *batch.Error
	if errors.As(err, &refused) {
		f.message = refused.Message
		for _, r := range refused.Records {
			f.records = append(f.records, wire.RecordError{Index: int32(r.Index), Message: r.Message})
		}
	}
	f.serious = f.code == wire.ErrKafkaStorageError || f.code == wire.ErrUnknownServerError
	return f
}

func codeOf(err error) int16 {
	var (
		coded     *codedError
		refused   *batch.Error
		sequence  *producers.SequenceError
		epoch     *replica.EpochError
		notEnough *replica.NotEnoughError
		too       *recompressedTooLargeError
	)
	switch {
	case err == nil:
		return wire.ErrNone
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &refused):
		return codeOfReason(refused.Reason)
	case errors.As(err, &sequence):
		return codeOfSequence(sequence)
	case errors.As(err, &too):
		return wire.ErrMessageTooLarge
	case errors.As(err, &notEnough):
		if notEnough.Appended {
			return wire.ErrNotEnoughReplicasAfterAppend
		}
		return wire.ErrNotEnoughReplicas
	case errors.As(err, &epoch):
		if epoch.Fenced() {
			return wire.ErrFencedLeaderEpoch
		}
		return wire.ErrUnknownLeaderEpoch
	case errors.Is(err, replica.ErrGone):
		return wire.ErrUnknownTopicOrPartition
	case errors.Is(err, replica.ErrNotLeader), errors.Is(err, engine.ErrStaleEpoch):
		return wire.ErrNotLeaderOrFollower
	case errors.Is(err, engine.ErrOutOfRange):
		return wire.ErrOffsetOutOfRange
	case errors.Is(err, engine.ErrTooLarge):
		return wire.ErrRecordListTooLarge
	}
	return codeOfStorage(err)
}

// codeOfStorage is for what is wrong on our side: the client may try again,
// perhaps elsewhere.
func codeOfStorage(err error) int16 {
	var corrupt *engine.CorruptError
	switch {
	case errors.Is(err, engine.ErrNoDir):
		return wire.ErrLogDirNotFound
	case errors.Is(err, replica.ErrOffline), errors.Is(err, engine.ErrClosed), errors.Is(err, engine.ErrPoisoned),
		errors.Is(err, engine.ErrStorage), errors.As(err, &corrupt):
		return wire.ErrKafkaStorageError
	case errors.Is(err, batch.ErrExpansion):
		return wire.ErrMessageTooLarge
	}
	return wire.ErrUnknownServerError
}

func codeOfReason(r batch.Reason) int16 {
	switch r {
	case batch.TooLarge:
		return wire.ErrMessageTooLarge
	case batch.Corrupt:
		return wire.ErrCorruptMessage
	case batch.InvalidTimestamp:
		return wire.ErrInvalidTimestamp
	case batch.UnsupportedCodec:
		return wire.ErrUnsupportedCompressionType
	}
	return wire.ErrInvalidRecord
}

func codeOfSequence(e *producers.SequenceError) int16 {
	if e.Kind == producers.FencedEpoch {
		return wire.ErrInvalidProducerEpoch
	}
	return wire.ErrOutOfOrderSequenceNumber
}
