import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SILENT_LOGGER } from '@nodepool-builder/image-builder/internal';
import { SiteView } from '../../src/web/site-view.ts';

test('the status page shows the current state after the clock was set back', async (t) => {
  const configuration = { manager: { store: '/nonexistent' } };
  const view = new SiteView(configuration as never, [], { records: [] } as never, SILENT_LOGGER);
  const noon = Date.UTC(2026, 0, 1, 12);
  t.mock.timers.enable({ apis: ['Date'], now: noon });
  const before = await view.current();
  assert.equal(await view.current(), before);
  t.mock.timers.setTime(noon - 3_600_000);
  assert.notEqual(await view.current(), before);
});
