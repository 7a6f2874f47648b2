/*
 * test_fanout.c - one stream, many receivers: each sees exactly the frames after its place, in whole frames, and all
 * memory is given back (the sanitizer looks).
 */
#include "ws/wire/fanout.h"
#include "ws/wire/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define RECEIVERS 12
#define ROUNDS	  4000

typedef struct Receiver
{
	FanoutCursor cursor;
	uint64_t position; /* of the next byte to come */
} Receiver;

static char *sent; /* the stream as it should be */
static size_t sent_len, sent_size;
static uint64_t *frame_ends;
static size_t frame_count;

static void
remember(const void *data, size_t len)
{
	if (sent_len + len > sent_size)
		sent = realloc(sent, sent_size = (sent_len + len) * 2);
	memcpy(sent + sent_len, data, len);
	sent_len += len;
}

static void
remember_frame_end(void)
{
	frame_ends = realloc(frame_ends, (frame_count + 1) * sizeof(*frame_ends));
	frame_ends[frame_count++] = sent_len;
}

static bool
is_frame_end(uint64_t position)
{
	size_t low = 0, high = frame_count;

	if (position == 0)
		return true;
	while (low < high)
	{
		size_t middle = (low + high) / 2;

		if (frame_ends[middle] < position)
			low = middle + 1;
		else
			high = middle;
	}
	return low < frame_count && frame_ends[low] == position;
}

static size_t
random_len(void)
{
	static const size_t edges[] = {0, 1, 125, 126, 127, 65535, 65536, 65537, 200000};

	return rand() % 40 == 0 ? edges[(size_t) rand() % 9] : (size_t) rand() % 300;
}

/* One frame, or several at once. */
static void
append(Fanout *stream)
{
	for (int n = rand() % 2 ? 1 : rand() % 20 + 2, i = 0; i < n; i++)
	{
		size_t len = random_len();
		char *payload = malloc(len + 1);
		unsigned char header[FRAME_SENT_HEADER_MAX];
		size_t header_len = frame_header(header, FRAME_TEXT, len);

		memset(payload, 'a' + rand() % 26, len);
		remember(header, header_len);
		remember(payload, len);
		remember_frame_end();
		fanout_append_message(stream, false, &(Buf){payload, len, len});
		free(payload);
	}
}

/* Where the frame ends that holds the byte before position. */
static size_t
frame_end_at(size_t position)
{
	size_t low = 0, high = frame_count;

	while (low < high)
	{
		size_t middle = (low + high) / 2;

		if (frame_ends[middle] < position)
			low = middle + 1;
		else
			high = middle;
	}
	return low < frame_count ? frame_ends[low] : position;
}

/* Takes slices, or parts of them; false when something is wrong with one. */
static bool
receive(Receiver *receiver, int slices)
{
	const char *data;
	size_t len;

	while (slices-- > 0 && fanout_peek(&receiver->cursor, &data, &len))
	{
		if (receiver->position + len > sent_len || memcmp(data, sent + receiver->position, len) != 0 ||
			!is_frame_end(receiver->position + len))
			return false;
		if (rand() % 3 == 0)
			len = (size_t) rand() % (len + 1);
		fanout_advance(&receiver->cursor, len);
		receiver->position += len;
		if (fanout_position(&receiver->cursor) != receiver->position ||
			(len > 0 && receiver->cursor.cut != frame_end_at(receiver->position) - receiver->position))
			return false;
	}
	return true;
}

/* To a later frame end, as a joiner does. */
static void
seek(Receiver *receiver)
{
	size_t at = 0;

	while (at < frame_count && frame_ends[at] < receiver->position)
		at++;
	if (at == frame_count)
		return;
	at += (size_t) rand() % (frame_count - at);
	receiver->position = frame_ends[at];
	fanout_seek(&receiver->cursor, receiver->position);
}

int
main(void)
{
	Receiver receivers[RECEIVERS] = {0};
	Fanout stream = {0};
	bool good = true;

	srand(42);
	for (int round = 0; round < ROUNDS && good; round++)
	{
		Receiver *receiver = &receivers[rand() % RECEIVERS];

		append(&stream);
		if (receiver->cursor.block == NULL)
		{
			fanout_attach(&stream, &receiver->cursor);
			receiver->position = stream.end;
		}
		else if (rand() % 20 == 0)
			fanout_detach(&receiver->cursor);
		else if (rand() % 10 == 0)
			seek(receiver);
		else
			good = receive(receiver, rand() % 8);
	}
	TAP_OK(good, "every slice is what was sent, and ends where a frame ends");
	TAP_OK(stream.end == sent_len, "positions count the bytes of the stream");
	good = true;
	for (int i = 0; i < RECEIVERS; i++)
	{
		FanoutCursor copy = {NULL, 0};

		if (receivers[i].cursor.block == NULL)
			continue;
		fanout_copy(&copy, &receivers[i].cursor);
		good = good && receive(&receivers[i], 1000000) && receivers[i].position == sent_len;
		fanout_detach(&receivers[i].cursor);
		fanout_detach(&copy);
	}
	TAP_OK(good, "in the end everybody has everything");
	fanout_free(&stream);
	free(sent);
	free(frame_ends);
	return tap_done();
}
