import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PACKETS } from '../../packages/gearman-node/src/packets.ts';
import { packetTable } from '../../scripts/docs/packet-table.ts';
import { readPage } from './markdown.ts';

test('docs/gearman-protocol.md lists the packets in packets.ts (npm run docs)', async () => {
  assert.ok((await readPage('docs/gearman-protocol.md')).includes(`\n${packetTable(PACKETS)}\n`));
});

test('the packet table has a row for each packet, with its number, senders and arguments', () => {
  const rows = packetTable(PACKETS).split('\n').slice(2);
  assert.equal(rows.length, Object.keys(PACKETS).length);
  assert.equal(rows[0], '| 1 | `CAN_DO` | worker | `function` |');
  assert.ok(rows.includes('| 13 | `WORK_COMPLETE` | worker, server | `handle`, `data` |'));
});
