package script

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kerr"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
)

// Connection is how Kafka's scripts are told where the broker is.
type Connection struct {
	client.Flags
}

// Register adds --bootstrap-server and --command-config.
func (c *Connection) Register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&c.Bootstrap, "bootstrap-server", "", "REQUIRED: host:port of a broker, or several with commas")
	fs.StringVar(&c.Config, "command-config", "", "file of Kafka client properties")
}

// adminLimit bounds an act that asks and answers; Kafka's own limit is a minute, too.
const adminLimit = time.Minute

// Admin runs f with a connected client.
func (c *Connection) Admin(cmd *cobra.Command, f func(ctx context.Context, cl *client.Admin) error) error {
	s, err := c.Settings(client.ForBoth, nil, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), adminLimit)
	defer cancel()
	cl, err := s.Connect(ctx, s.Common())
	if err != nil {
		return err
	}
	defer cl.Close()
	return f(ctx, client.NewAdmin(cl))
}

// Say is what Kafka's tools print of a broker's refusal: the broker's own words, or
// what Kafka's clients say for the code.
func Say(err error, message string) string {
	var code *kerr.Error
	switch {
	case message != "":
		return message
	case errors.As(err, &code):
		if text, ok := clientWords[code.Message]; ok {
			return text
		}
		return code.Description
	}
	return err.Error()
}

// clientWords are the messages of Kafka's clients that differ from those of kerr and
// that scripts have been seen to look for.
var clientWords = map[string]string{
	"UNKNOWN_TOPIC_OR_PARTITION": "This server does not host this topic-partition.",
	"GROUP_ID_NOT_FOUND":         "The group id does not exist.",
	"NON_EMPTY_GROUP":            "The group is not empty.",
	"OFFSET_OUT_OF_RANGE":        "The requested offset is not within the range of offsets maintained by the server.",
	"GROUP_SUBSCRIBED_TO_TOPIC":  "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it.",
	"TOPIC_ALREADY_EXISTS":       "Topic with this name already exists.",
	"INVALID_GROUP_ID":           "The configured groupId is invalid.",
	"COORDINATOR_NOT_AVAILABLE":  "The coordinator is not available.",
	"UNKNOWN_MEMBER_ID":          "The coordinator is not aware of this member.",
}

// Unreachable says whether err means that no broker was there.
func Unreachable(err error) bool { return cli.Status(err) == cli.ExitUnreachable }
