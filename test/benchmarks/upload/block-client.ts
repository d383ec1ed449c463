/**
 * Minimal HTTP client that sends blocks of a file. Reads lines with the path of a {@link BlockOrder}, and responds to
 * each with the duration in seconds.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { Agent, type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { type AwsKey, signedHeaders } from './aws-signature.ts';

/** A file with the requests for its blocks. */
export interface BlockOrder {
  readonly path: string;
  /** `http://127.0.0.1:port`. */
  readonly address: string;
  readonly blockSize: number;
  /** Number of concurrent requests. */
  readonly concurrency: number;
  /** Key for AWS, which takes blocks only with their SHA-256 and a signature. Absent if the headers are complete. */
  readonly awsKey?: AwsKey | undefined;
  readonly blocks: readonly {
    readonly index: number;
    /** Path and query of the PUT request. */
    readonly target: string;
    readonly headers: Readonly<Record<string, string>>;
  }[];
}

for await (const line of createInterface(process.stdin)) {
  const order = JSON.parse(await readFile(line, 'utf8')) as BlockOrder;
  const begin = performance.now();
  await sendAll(order);
  console.log((performance.now() - begin) / 1000);
}

async function sendAll({ path, address, blockSize, concurrency, awsKey, blocks }: BlockOrder): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const file = await open(path);
  const rest = blocks.values();
  const worker = async (): Promise<void> => {
    const bytes = Buffer.alloc(blockSize);
    for (const { index, target, headers } of rest) {
      await file.read(bytes, 0, blockSize, index * blockSize);
      const url = new URL(target, address);
      const signed = awsKey === undefined ? headers : signBlock(awsKey, url, bytes, headers);
      const outgoing = request(url, {
        method: 'PUT',
        agent,
        headers: { ...signed, 'content-length': blockSize },
      });
      outgoing.end(bytes);
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
      if (response.statusCode !== 201) throw new Error(`the server responds with ${response.statusCode}`);
      response.resume();
      await once(response, 'end');
    }
  };
  try {
    await Promise.all(Array.from({ length: concurrency }, worker));
  } finally {
    await file.close();
    agent.destroy();
  }
}

function signBlock(
  key: AwsKey,
  url: URL,
  bytes: Buffer,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const digest = createHash('sha256').update(bytes).digest();
  const put = { method: 'PUT', url, digest: digest.toString('hex') };
  return signedHeaders(key, put, { ...headers, 'x-amz-checksum': digest.toString('base64') });
}
