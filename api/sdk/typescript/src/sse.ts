// Reads server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html.

/** A message of a stream. */
export interface Message {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Returns the messages of a stream. Calls `received` for each part that arrives, comments included. */
export async function* messages(stream: ReadableStream<Uint8Array>, received: () => void): AsyncGenerator<Message, void> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let rest = '';
  let lines: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // A message that was cut off is dropped: it comes again.
      if (done) return;
      received();
      rest += decoder.decode(value, { stream: true });
      const parts = rest.split(/\r\n|\n|\r(?!$)/);
      rest = parts.pop() ?? '';
      for (const line of parts) {
        if (line !== '') {
          lines.push(line);
        } else {
          const message = parse(lines);
          lines = [];
          if (message) yield message;
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Returns the message of some lines; undefined if they are comments only. */
function parse(lines: readonly string[]): Message | undefined {
  let id: string | undefined;
  let event = 'message';
  const data: string[] = [];
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === 'id') id = value;
    else if (name === 'event') event = value;
    else if (name === 'data') data.push(value);
  }
  return data.length > 0 || id !== undefined ? { id, event, data: data.join('\n') } : undefined;
}
