import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { ImageProvider } from '@nodepool-builder/image-builder';
import { FakeImageProvider } from '@nodepool-builder/image-builder/testing';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { AbandonedUploads } from '../../src/jobs/abandoned-uploads.ts';
import { type LedgerEntry, UploadLedger } from '../../src/jobs/upload-ledger.ts';
import { temporaryDirectory } from '../temporary-directory.ts';
import { ledgerEntry } from './ledger-entry.ts';

const GRACE = 120_000;

/** A provider that is asked to discard; `answer` says how that ends. */
class DiscardingProvider extends FakeImageProvider {
  readonly discarded: string[] = [];
  answer: () => Promise<void> = () => Promise.resolve();

  override async discard(uploadId: string): Promise<void> {
    this.discarded.push(uploadId);
    await this.answer();
  }
}

interface Site {
  readonly ledger: UploadLedger;
  readonly abandoned: AbandonedUploads;
  readonly provider: DiscardingProvider;
  readonly providers: Map<string, ImageProvider>;
  readonly logger: RecordingLogger;
  /** Lets milliseconds pass, and what is due be done. */
  readonly pass: (milliseconds: number) => Promise<void>;
}

async function site(t: TestContext, ...entries: readonly LedgerEntry[]): Promise<Site> {
  const logger = new RecordingLogger();
  const ledger = await UploadLedger.open(temporaryDirectory(t), logger);
  for (const entry of entries) await ledger.put(entry);
  const provider = new DiscardingProvider({ name: 'cloud' });
  const providers = new Map<string, ImageProvider>([['cloud', provider]]);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const abandoned = new AbandonedUploads({ ledger, provider: (name) => providers.get(name), logger });
  for (const entry of entries) abandoned.add(entry);
  return {
    ledger,
    abandoned,
    provider,
    providers,
    logger,
    pass: async (milliseconds) => {
      t.mock.timers.tick(milliseconds);
      await abandoned.idle();
    },
  };
}

it('what nobody asks for again in two minutes is discarded, and forgotten', async (t) => {
  const { ledger, provider, pass } = await site(t, ledgerEntry());
  await pass(GRACE - 1);
  assert.deepEqual(provider.discarded, []);
  await pass(1);
  assert.deepEqual(provider.discarded, ['upload-1']);
  assert.deepEqual(ledger.entries, []);
});

it('what is reclaimed in time stays', async (t) => {
  const { ledger, provider, abandoned, pass } = await site(
    t,
    ledgerEntry(),
    ledgerEntry({ 'upload-id': 'upload-2' }),
  );
  await abandoned.reclaim(ledgerEntry());
  await pass(GRACE);
  assert.deepEqual(provider.discarded, ['upload-2']);
  assert.deepEqual(ledger.entries, [ledgerEntry()]);
});

it('whoever reclaims what is being discarded waits for the end of that', async (t) => {
  const { provider, abandoned, ledger, pass } = await site(t, ledgerEntry());
  const began = Promise.withResolvers<void>();
  const discard = Promise.withResolvers<void>();
  provider.answer = () => {
    began.resolve();
    return discard.promise;
  };
  const passed = pass(GRACE);
  await began.promise;
  const reclaimed = abandoned.reclaim(ledgerEntry()).then(() => ledger.entries.length);
  discard.resolve();
  assert.equal(await reclaimed, 0);
  await passed;
});

it('an image whose answer was on its way stays, with a warning', async (t) => {
  const { ledger, provider, logger, pass } = await site(t, ledgerEntry({ 'external-id': 'uuid' }));
  await pass(GRACE);
  assert.deepEqual(provider.discarded, []);
  assert.deepEqual(ledger.entries, []);
  assert.match(logger.lines[0] ?? '', /^warn upload of 0001 to cloud.*: image uuid stays/);
});

it('while the cloud is away it is tried again, ever more rarely', async (t) => {
  const { ledger, provider, logger, pass } = await site(t, ledgerEntry());
  provider.answer = () => Promise.reject(new Error('503'));
  await pass(GRACE);
  for (const pause of [10_000, 20_000, 40_000]) await pass(pause);
  assert.equal(provider.discarded.length, 4);
  assert.match(logger.lines[0] ?? '', /^warn .*tried again: 503/);
  provider.answer = () => Promise.resolve();
  await pass(79_999);
  assert.equal(provider.discarded.length, 4);
  await pass(1);
  assert.equal(provider.discarded.length, 5);
  assert.deepEqual(ledger.entries, []);
});

it('of a provider that is not configured any more it stays on record, until that is', async (t) => {
  const { ledger, abandoned, provider, providers, logger, pass } = await site(t, ledgerEntry());
  providers.clear();
  await pass(GRACE);
  await pass(GRACE);
  assert.deepEqual(logger.lines.length, 1, 'it is said once');
  assert.match(logger.lines[0] ?? '', /^warn provider "cloud" is not configured any more/);
  assert.equal(ledger.entries.length, 1);
  providers.set('cloud', provider);
  abandoned.retry();
  await abandoned.idle();
  assert.deepEqual(ledger.entries, []);
});

it('one provider that is away holds up no other', async (t) => {
  const { ledger, provider, providers, pass } = await site(
    t,
    ledgerEntry(),
    ledgerEntry({ provider: 'other' }),
  );
  provider.answer = () => Promise.reject(new Error('503'));
  providers.set('other', new FakeImageProvider({ name: 'other' }));
  await pass(GRACE);
  assert.deepEqual(ledger.entries, [ledgerEntry()]);
});

it('when the builder stops, what is left stays on record', async (t) => {
  const { ledger, abandoned, provider, pass } = await site(t, ledgerEntry());
  await abandoned.close();
  await pass(GRACE);
  assert.deepEqual(provider.discarded, []);
  assert.equal(ledger.entries.length, 1);
});
