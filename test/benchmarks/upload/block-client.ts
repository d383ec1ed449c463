/**
 * A bare HTTP client that sends blocks of a file: reads lines with the path of a {@link BlockOrder}, and answers each with
 * the seconds that it took.
 */
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { Agent, type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';

/** A file with the requests for its blocks. */
export interface BlockOrder {
  readonly path: string;
  /** `http://127.0.0.1:port`. */
  readonly address: string;
  readonly blockSize: number;
  /** Number of requests at a time. */
  readonly concurrency: number;
  readonly blocks: readonly {
    readonly index: number;
    /** Path and query of its PUT. */
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

async function sendAll({ path, address, blockSize, concurrency, blocks }: BlockOrder): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const file = await open(path);
  const rest = blocks.values();
  const worker = async (): Promise<void> => {
    const bytes = Buffer.alloc(blockSize);
    for (const { index, target, headers } of rest) {
      await file.read(bytes, 0, blockSize, index * blockSize);
      const outgoing = request(address + target, {
        method: 'PUT',
        agent,
        headers: { ...headers, 'content-length': blockSize },
      });
      outgoing.end(bytes);
      const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
      if (answer.statusCode !== 201) throw new Error(`the server answers ${answer.statusCode}`);
      answer.resume();
      await once(answer, 'end');
    }
  };
  try {
    await Promise.all(Array.from({ length: concurrency }, worker));
  } finally {
    await file.close();
    agent.destroy();
  }
}
