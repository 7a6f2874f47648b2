/* ws_client.c - see ws_client.h. */
#include "ws_client.h"

#include "basics.h"

#include <stdio.h>
#include <string.h>

size_t
ws_write_upgrade(char *to, size_t size, int port, const char *sheet, const char *token)
{
	size_t len = (size_t) snprintf(
		to, size,
		"GET /sheetws?token=%s&fid=%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
		token, sheet, port);

	if (len >= size)
		fail("the upgrade is too long");
	return len;
}

size_t
ws_measure_frame(const unsigned char *frame, size_t len, uint64_t *payload)
{
	if (len < 2)
		return 0;
	*payload = frame[1] & 0x7F;
	if (*payload < 126)
		return 2;
	if (*payload == 126)
	{
		if (len < 4)
			return 0;
		*payload = frame[2] << 8 | frame[3];
		return 4;
	}
	if (len < 10)
		return 0;
	*payload = 0;
	for (int i = 2; i < 10; i++)
		*payload = *payload << 8 | frame[i];
	return 10;
}

size_t
ws_write_short(char *to, int opcode, const void *payload, size_t len)
{
	to[0] = (char) (0x80 | opcode);
	to[1] = (char) (0x80 | len);
	memset(to + 2, 0, 4);
	memcpy(to + 6, payload, len);
	return len + 6;
}
