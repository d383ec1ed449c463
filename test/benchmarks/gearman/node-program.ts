/**
 * A worker, a client, a holder of many functions or a decoder, on one of the Node libraries:
 *
 *     node-program.ts LIBRARY worker HOST PORT FUNCTION CONCURRENCY
 *     node-program.ts LIBRARY client HOST PORT FUNCTION     request: IN-FLIGHT BYTES MILLISECONDS; prints JOBS SECONDS
 *     node-program.ts LIBRARY functions HOST PORT           requests: register COUNT, unregister COUNT, stall
 *     node-program.ts LIBRARY decoder                       request: FILE MILLISECONDS; prints PACKETS BYTES SECONDS
 *     node-program.ts LIBRARY copier                        like decoder, but only copies, into new memory per MiB
 *
 * Each line of standard input is a request, and gets one line in response. The program exits at the end of its input.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { copyFile, decodeFile } from './decode-file.ts';
import type { NodeLibrary, Server, Submit } from './libraries/node-library.ts';
import { withoutNagle } from './libraries/peers.ts';

type Answer = (order: string, ...numbers: number[]) => Promise<string> | string;

const [name, role = '', host = '', port, functionName = '', concurrency] = process.argv.slice(2);
const { library } = (await import(`./libraries/${name}.ts`)) as { library: NodeLibrary };
const server: Server = { host, port: Number(port) };
const ROLES: Readonly<Record<string, () => Promise<Answer> | Answer>> = {
  worker: () => {
    library.work(server, functionName, Number(concurrency));
    return () => 'a worker takes no orders';
  },
  client: async () => clientRole(await library.connect(server, functionName)),
  functions: functionsRole,
  decoder:
    () =>
    (file, milliseconds = 0) =>
      decodeFile(library, file, milliseconds),
  copier:
    () =>
    (file, milliseconds = 0) =>
      copyFile(file, milliseconds),
};

withoutNagle();
const answer = await ROLES[role]?.();
if (answer === undefined) throw new Error(`unknown role "${role}"`);
for await (const line of createInterface(process.stdin)) {
  const [order = '', ...numbers] = line.split(' ');
  console.log(await answer(order, ...numbers.map(Number)));
}
process.exit();

function clientRole(submit: Submit): Answer {
  return async (inFlight, bytes = 0, milliseconds = 0) => {
    const payload = Buffer.alloc(bytes, 'x');
    let jobs = 0;
    const begin = performance.now();
    const deadline = begin + milliseconds;
    const oneAfterTheOther = async (): Promise<void> => {
      while (performance.now() < deadline) {
        const result = await submit(payload);
        if (result.length !== bytes) throw new Error('a result is not what was sent');
        jobs += 1;
      }
    };
    await Promise.all(Array.from({ length: Number(inFlight) }, oneAfterTheOther));
    return `${jobs} ${(performance.now() - begin) / 1000}`;
  };
}

async function functionsRole(): Promise<Answer> {
  if (library.functions === undefined) throw new Error(`${name} cannot deregister many functions`);
  const functions = await library.functions(server);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  return async (order, count) => {
    if (order === 'stall') {
      delay.disable();
      const longest = delay.max / 1e6;
      delay.reset();
      return String(longest);
    }
    const names = Array.from({ length: count ?? 0 }, (_, index) => `function-${index}`);
    delay.enable();
    await functions[order as 'register' | 'unregister'](names);
    return 'ok';
  };
}
