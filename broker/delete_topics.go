package broker

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// handleDeleteTopics serves DeleteTopics, by name in all versions and by id
// from 6 on. When the answer is sent the topics are gone for good; their files
// are unlinked in the background.
func (b *Broker) handleDeleteTopics(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.DeleteTopicsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	img := b.coord.Image()
	wanted := b.topicsToDelete(req, img)
	var names []string
	for i := range wanted {
		if wanted[i].code == wire.ErrNone {
			names = append(names, wanted[i].topic.Name)
		}
	}
	done := make(map[string]coord.TopicResult, len(names))
	if len(names) > 0 {
		for _, r := range b.coord.DeleteTopics(rc.ctx, names) {
			done[r.Name] = r
		}
	}
	for i := range wanted {
		w := &wanted[i]
		if r, ok := done[nameOf(w)]; ok && w.code == wire.ErrNone {
			if w.code, w.message = r.Code, r.Message; r.Code == wire.ErrNone {
				rc.log.Info("topic deleted", "topic", r.Name, "id", coord.IDText(w.topic.ID), "client", rc.header.ClientID)
			}
		}
		t := kmsg.NewDeleteTopicsResponseTopic()
		t.Topic, t.TopicID, t.ErrorCode = w.name, w.id, w.code
		if w.code != wire.ErrNone {
			t.ErrorMessage = &w.message
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// topicToDelete is a topic of the request and what was found.
type topicToDelete struct {
	name    *string // as asked; filled in where it was found by id
	id      coord.ID
	topic   *coord.Topic
	code    int16
	message string
}

func nameOf(w *topicToDelete) string {
	if w.topic == nil {
		return ""
	}
	return w.topic.Name
}

func (w *topicToDelete) refuse(code int16, format string, args ...any) {
	w.code, w.message = code, fmt.Sprintf(format, args...)
}

// topicsToDelete resolves the request's names and ids against the image.
func (b *Broker) topicsToDelete(req *kmsg.DeleteTopicsRequest, img *coord.Image) []topicToDelete {
	var wanted []topicToDelete
	for i := range req.TopicNames {
		wanted = append(wanted, topicToDelete{name: &req.TopicNames[i]})
	}
	for i := range req.Topics {
		wanted = append(wanted, topicToDelete{name: req.Topics[i].Topic, id: req.Topics[i].TopicID})
	}
	times := map[*coord.Topic]int{}
	for i := range wanted {
		w := &wanted[i]
		b.findToDelete(w, img, req.Version)
		if w.topic != nil {
			times[w.topic]++
		}
	}
	for i := range wanted {
		if w := &wanted[i]; times[w.topic] > 1 && w.topic != nil {
			w.refuse(wire.ErrInvalidRequest, "topic %q is in the request more than once", w.topic.Name)
		}
	}
	return wanted
}

func (b *Broker) findToDelete(w *topicToDelete, img *coord.Image, version int16) {
	byID := w.id != coord.ID{}
	switch {
	case !b.config.Topics.DeleteEnabled:
		w.refuse(wire.ErrTopicDeletionDisabled, "deleting topics is switched off by delete.topic.enable=false")
		if version < 3 { // which do not know that code
			w.code = wire.ErrInvalidRequest
		}
	case byID && w.name != nil:
		w.refuse(wire.ErrInvalidRequest, "topic %q is given with an id (%s) too; give one of them", *w.name, coord.IDText(w.id))
	case byID:
		if w.topic = img.TopicByID(w.id); w.topic == nil {
			w.refuse(wire.ErrUnknownTopicID, "no topic has the id %s", coord.IDText(w.id))
			return
		}
		w.name = &w.topic.Name
	case w.name == nil:
		w.refuse(wire.ErrInvalidRequest, "a topic is given with neither name nor id")
	default:
		if w.topic = img.Topic(*w.name); w.topic == nil {
			w.refuse(wire.ErrUnknownTopicOrPartition, "topic %q does not exist", *w.name)
			return
		}
		w.id = w.topic.ID
	}
}
