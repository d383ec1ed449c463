import type { PACKETS } from '../../packages/gearman-node/src/packets.ts';
import { markdownTable } from '../markdown.ts';

/** Returns the packet types as Markdown, one row each, by number. */
export function packetTable(packets: typeof PACKETS): string {
  const rows = Object.entries(packets)
    .toSorted(([, a], [, b]) => a.number - b.number)
    .map(([name, row]) => [
      String(row.number),
      `\`${name}\``,
      row.senders.join(', '),
      row.arguments.map((argument) => `\`${argument}\``).join(', '),
    ]);
  return markdownTable(['number', 'packet', 'sent by', 'arguments'], rows);
}
