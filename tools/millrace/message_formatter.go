package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// messageFormatter writes records as the DefaultMessageFormatter of Kafka's console
// consumer does, by the properties that it has.
type messageFormatter struct {
	timestamp, partition, offset, epoch, delivery, headers, key, value bool

	keySeparator, lineSeparator, headersSeparator, nullLiteral string

	readKey, readValue, readHeader deserializer
}

// deserializer makes text of stored bytes.
type deserializer func([]byte) (string, error)

func newMessageFormatter(given map[string]string) (*messageFormatter, error) {
	f := &messageFormatter{value: true, keySeparator: "\t", lineSeparator: "\n", headersSeparator: ",", nullLiteral: "null"}
	for name, set := range map[string]*bool{
		"print.timestamp": &f.timestamp, "print.partition": &f.partition, "print.offset": &f.offset, "print.epoch": &f.epoch,
		"print.delivery": &f.delivery, "print.headers": &f.headers, "print.key": &f.key, "print.value": &f.value,
	} {
		if v, ok := given[name]; ok {
			*set = isTrue(v)
		}
	}
	for name, set := range map[string]*string{
		"key.separator": &f.keySeparator, "line.separator": &f.lineSeparator,
		"headers.separator": &f.headersSeparator, "null.literal": &f.nullLiteral,
	} {
		if v, ok := given[name]; ok {
			*set = v
		}
	}
	for name, set := range map[string]*deserializer{
		"key.deserializer": &f.readKey, "value.deserializer": &f.readValue, "headers.deserializer": &f.readHeader,
	} {
		class, ok := given[name]
		if !ok {
			continue
		}
		read, ok := deserializers[class[strings.LastIndexByte(class, '.')+1:]]
		if !ok {
			return nil, fmt.Errorf("%s=%s: classes cannot be loaded here; String, ByteArray, Integer, Long, Short, Float, Double, Boolean and UUIDDeserializer are built in", name, class)
		}
		*set = read
	}
	return f, nil
}

// deserializers are those of Kafka that the console can do something with, by the last
// part of the class name.
var deserializers = map[string]deserializer{
	"StringDeserializer":    nil,
	"ByteArrayDeserializer": nil,
	"IntegerDeserializer":   number(4, func(b []byte) string { return strconv.Itoa(int(int32(binary.BigEndian.Uint32(b)))) }),
	"LongDeserializer":      number(8, func(b []byte) string { return strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10) }),
	"ShortDeserializer":     number(2, func(b []byte) string { return strconv.Itoa(int(int16(binary.BigEndian.Uint16(b)))) }),
	"FloatDeserializer":     number(4, func(b []byte) string { return javaFloat(float64(math.Float32frombits(binary.BigEndian.Uint32(b))), 32) }),
	"DoubleDeserializer":    number(8, func(b []byte) string { return javaFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 64) }),
	"BooleanDeserializer":   number(1, func(b []byte) string { return strconv.FormatBool(b[0] != 0) }),
	"UUIDDeserializer":      nil, // it is text already
}

func number(size int, write func([]byte) string) deserializer {
	return func(b []byte) (string, error) {
		if len(b) != size {
			return "", fmt.Errorf("Size of data received by deserializer is not %d", size) //nolint:staticcheck // Kafka's words
		}
		return write(b), nil
	}
}

// javaFloat writes a number as Java does, which always shows a fraction.
func javaFloat(v float64, bits int) string {
	text := strconv.FormatFloat(v, 'f', -1, bits)
	if !strings.ContainsAny(text, ".NI") {
		text += ".0"
	}
	return text
}

func (f *messageFormatter) field(dst, b []byte, read deserializer) ([]byte, error) {
	switch {
	case b == nil:
		return append(dst, f.nullLiteral...), nil
	case read == nil:
		return append(dst, b...), nil
	}
	text, err := read(b)
	return append(dst, text...), err
}

// appendRecord adds a record: the fields that are wanted with separators between them.
func (f *messageFormatter) appendRecord(dst []byte, r *kgo.Record) ([]byte, error) {
	wanted := []bool{f.timestamp, f.partition, f.offset, f.epoch, f.delivery, f.headers, f.key, f.value}
	end := func(i int) {
		for _, more := range wanted[i+1:] {
			if more {
				dst = append(dst, f.keySeparator...)
				return
			}
		}
		dst = append(dst, f.lineSeparator...)
	}
	var err, failed error
	for i, ok := range wanted {
		if !ok {
			continue
		}
		switch i {
		case 0:
			dst = append(dst, timestampText(r)...)
		case 1:
			dst = strconv.AppendInt(append(dst, "Partition:"...), int64(r.Partition), 10)
		case 2:
			dst = strconv.AppendInt(append(dst, "Offset:"...), r.Offset, 10)
		case 3:
			dst = strconv.AppendInt(append(dst, "Epoch:"...), int64(r.LeaderEpoch), 10)
		case 4:
			dst = append(dst, "Delivery:NOT_PRESENT"...)
		case 5:
			dst, err = f.appendHeaders(dst, r.Headers)
		case 6:
			dst, err = f.field(dst, r.Key, f.readKey)
		case 7:
			dst, err = f.field(dst, r.Value, f.readValue)
		}
		if err != nil {
			failed = err
		}
		end(i)
	}
	return dst, failed
}

func timestampText(r *kgo.Record) string {
	kind := "CreateTime"
	switch r.Attrs.TimestampType() {
	case 1:
		kind = "LogAppendTime"
	case -1:
		return "NO_TIMESTAMP"
	}
	return kind + ":" + strconv.FormatInt(r.Timestamp.UnixMilli(), 10)
}

func (f *messageFormatter) appendHeaders(dst []byte, headers []kgo.RecordHeader) ([]byte, error) {
	if len(headers) == 0 {
		return append(dst, "NO_HEADERS"...), nil
	}
	var err error
	for i, h := range headers {
		if i > 0 {
			dst = append(dst, f.headersSeparator...)
		}
		dst = append(append(dst, h.Key...), ':')
		if dst, err = f.field(dst, h.Value, f.readHeader); err != nil {
			return dst, err
		}
	}
	return dst, nil
}
