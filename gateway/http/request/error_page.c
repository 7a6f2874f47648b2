/*
 * error_page.c - errors as pages, for people who open an address in a browser. Clients that do not name text/html in
 * Accept are programs, and get JSON. The page depends on the status and the reason alone, and has no script.
 */
#include "http/request/error_page.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

static const char error_style[] =
	":root{color-scheme:light dark;font:15px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',"
	"'WenQuanYi Micro Hei',sans-serif;color:#1c2421;background:#fff}"
	"body{margin:0}main{max-width:32rem;margin:20vh auto 0;padding:0 1.2rem}"
	"h1{font-size:1.4rem;margin:0 0 .6rem}p{margin:.3rem 0;overflow-wrap:break-word}"
	".quiet{color:#53605b;margin-top:1.2rem}a{color:#0b6b50}"
	"@media(prefers-color-scheme:dark){:root{color:#e4eae7;background:#1c1f21}.quiet{color:#a9b6b0}a{color:#62c9a5}}";

/* Texts of the errors that people meet. Others show the reason that programs get. */
static const struct
{
	int status;
	const char *title, *text, *chinese;
} error_texts[] = {
	{404, "Not found", "There is nothing at this address, or no longer.", "此地址没有内容，或内容已不存在。"},
	{413, "Too large", "This is too large to be shown.", "内容过大，无法显示。"},
	{429, "Too many requests", "Wait a moment, then try again.", "请求过多，请稍后再试。"},
	{503, "Not available now", "Wait a moment, then try again.", "暂时不可用，请稍后再试。"},
};

void
style_source(const char *style, char to[STYLE_SOURCE_MAX])
{
	unsigned char digest[EVP_MAX_MD_SIZE], text[60];
	unsigned int len;

	if (EVP_Digest(style, strlen(style), digest, &len, EVP_sha256(), NULL) != 1)
	{
		strcpy(to, "'none'");
		return;
	}
	EVP_EncodeBlock(text, digest, (int) len);
	snprintf(to, STYLE_SOURCE_MAX, "'sha256-%s'", text);
}

static void
error_page_put(Buf *to, int status, const char *reason)
{
	const char *title = "It did not work", *chinese = NULL;

	for (size_t i = 0; i < sizeof(error_texts) / sizeof(error_texts[0]); i++)
	{
		if (error_texts[i].status != status)
			continue;
		title = error_texts[i].title;
		reason = error_texts[i].text;
		chinese = error_texts[i].chinese;
	}
	buf_printf(to,
			   "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
			   "content=\"width=device-width,initial-scale=1\"><meta name=\"robots\" content=\"noindex\">"
			   "<title>%s</title><style>%s</style></head><body><main><h1>%s</h1><p>",
			   title, error_style, title);
	buf_put_html(to, reason, strlen(reason));
	buf_puts(to, "</p>");
	if (chinese != NULL)
		buf_printf(to, "<p lang=\"zh-CN\">%s</p>", chinese);
	buf_printf(to, "<p class=\"quiet\">%d · <a href=\"/\">pg_sheet</a></p></main></body></html>\n", status);
}

bool
error_page_answer(Request *request, int status, const char *reason)
{
	static char source[STYLE_SOURCE_MAX];
	char policy[160];
	Buf body = {NULL, 0, 0};

	if (!request->for_people || status < 400 || request_is_answered(request))
		return false;
	request_add_header(request, "Vary", "Accept");
	if (head_quality(head_field(&request->head, "accept"), "text/html") == 0)
		return false;
	if (source[0] == '\0')
		style_source(error_style, source);
	snprintf(policy, sizeof(policy),
			 "default-src 'none'; style-src %s; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", source);
	request_add_header(request, "Content-Security-Policy", policy);
	error_page_put(&body, status, reason);
	request_answer(request, status, "text/html; charset=utf-8", &body);
	return true;
}
