import type { IncomingMessage } from 'node:http';

/** What came of an answer's body: its status is worth more than an error while reading the rest. */
export async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  } catch {
    // the server hung up
  }
  return Buffer.concat(chunks).toString();
}
