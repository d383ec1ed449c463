import { formatAddress, JobServer } from '@nodepool-builder/gearman-node';
import type { Command } from 'commander';
import { openLogging } from '../logging/logging.ts';
import { portNumber } from './options.ts';
import { stopSignal } from './stop-signal.ts';

/** `gearmand`: the embedded job server by itself. */
export function registerGearmand(program: Command): void {
  program
    .command('gearmand')
    .summary('run a Gearman job server')
    .description('Runs the Gearman job server that is embedded here, until SIGTERM or SIGINT.')
    .option('-L, --listen <address>', 'address to listen on', '127.0.0.1')
    .option('-p, --port <port>', 'port to listen on', portNumber, 4730)
    .action(async (options: { listen: string; port: number }) => {
      const logging = openLogging();
      const server = new JobServer({ logger: logging.logger('gear.Server') });
      const stop = stopSignal();
      try {
        const address = await server.listen(options.port, options.listen);
        console.log(`gearmand listens on ${formatAddress(address)}`);
        await stop.requested;
      } finally {
        stop.close();
        await server.close();
        await logging.close();
      }
    });
}
