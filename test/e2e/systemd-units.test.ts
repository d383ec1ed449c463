// Only in test:all: it needs systemd-analyze.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { it } from 'node:test';

const EXAMPLES = join(import.meta.dirname, '../../examples');

for (const [unit, exposure] of Object.entries({
  'nodepool-all-in-one.service': 6.0,
  'nodepool-builder.service': 6.0,
  'nodepool-manager.service': 4.0,
})) {
  it(`the systemd unit ${unit} is valid, and its exposure is at most ${exposure}`, () => {
    const path = join(EXAMPLES, 'systemd', unit);
    assert.equal(execFileSync('systemd-analyze', ['verify', path], { encoding: 'utf8', stdio: 'pipe' }), '');
    execFileSync('systemd-analyze', ['security', '--offline=true', `--threshold=${exposure * 10}`, path]);
  });
}
