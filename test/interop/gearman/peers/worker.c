/* A worker on libgearman. README.md describes its input and output. GRAB is all, unique or plain. */
#include <libgearman/gearman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gearman_return_t complete(gearman_job_st *job, const void *data, size_t size) {
  return gearman_job_send_complete(job, data, size);
}

static gearman_return_t done(gearman_job_st *job) { return complete(job, "done", 4); }

static gearman_return_t echo(gearman_job_st *job, void *context) {
  (void)context;
  return complete(job, gearman_job_workload(job), gearman_job_workload_size(job));
}

static gearman_return_t empty(gearman_job_st *job, void *context) {
  (void)context;
  return complete(job, "", 0);
}

static gearman_return_t status(gearman_job_st *job, void *context) {
  (void)context;
  gearman_job_send_status(job, 1, 2);
  return done(job);
}

static gearman_return_t data(gearman_job_st *job, void *context) {
  (void)context;
  gearman_job_send_data(job, "part", 5);
  return done(job);
}

static gearman_return_t warning(gearman_job_st *job, void *context) {
  (void)context;
  gearman_job_send_warning(job, "part", 5);
  return done(job);
}

static gearman_return_t fail(gearman_job_st *job, void *context) {
  (void)job, (void)context;
  return GEARMAN_FAIL;
}

static gearman_return_t exception(gearman_job_st *job, void *context) {
  (void)context;
  return gearman_job_send_exception(job, "boom", 5);
}

static gearman_return_t held(gearman_job_st *job, void *context) {
  (void)context;
  const unsigned char *payload = gearman_job_workload(job);
  printf("job ");
  for (size_t i = 0; i < gearman_job_workload_size(job); i++) printf("%02x", payload[i]);
  printf("\n");
  fflush(stdout);
  char line[80];
  if (fgets(line, sizeof line, stdin) == NULL) exit(0);
  return done(job);
}

static gearman_return_t split(gearman_job_st *job, void *context) {
  (void)context;
  const char *word = gearman_job_workload(job), *end = word + gearman_job_workload_size(job);
  while (word < end) {
    const char *blank = memchr(word, ' ', (size_t)(end - word));
    if (blank == NULL) blank = end;
    gearman_job_send_data(job, word, (size_t)(blank - word));
    word = blank + 1;
  }
  return GEARMAN_SUCCESS;
}

/* The tasks arrive in reverse order. */
static gearman_return_t join(gearman_aggregator_st *aggregator, gearman_task_st *task, gearman_result_st *result) {
  (void)aggregator;
  char all[1024];
  char *start = all + sizeof all;
  for (; task != NULL; task = gearman_next(task)) {
    gearman_result_st *one = gearman_task_result(task);
    start -= gearman_result_size(one);
    memcpy(start, gearman_result_value(one), gearman_result_size(one));
  }
  return gearman_result_store_value(result, start, (size_t)(all + sizeof all - start));
}

static const struct {
  const char *name;
  gearman_function_fn *function;
} BEHAVIOURS[] = {{"echo", echo},       {"empty", empty}, {"status", status},       {"data", data},
                  {"warning", warning}, {"fail", fail},   {"exception", exception}, {"held", held}};

static int offer(gearman_worker_st *worker, const char *name) {
  size_t length = strcspn(name, ":");
  if (strncmp(name, "split:", 6) == 0) {
    gearman_function_t function = gearman_function_create_partition(split, join);
    return gearman_success(gearman_worker_define_function(worker, name, strlen(name), function, 0, NULL));
  }
  for (size_t i = 0; i < sizeof BEHAVIOURS / sizeof *BEHAVIOURS; i++) {
    if (strlen(BEHAVIOURS[i].name) != length || strncmp(BEHAVIOURS[i].name, name, length) != 0) continue;
    gearman_function_t function = gearman_function_create(BEHAVIOURS[i].function);
    return gearman_success(gearman_worker_define_function(worker, name, strlen(name), function, 0, NULL));
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  gearman_worker_st *worker = gearman_worker_create(NULL);
  gearman_worker_add_server(worker, "127.0.0.1", (in_port_t)atoi(argv[1]));
  if (strcmp(argv[3], "all") != 0) gearman_worker_remove_options(worker, GEARMAN_WORKER_GRAB_ALL);
  if (strcmp(argv[3], "unique") == 0) gearman_worker_add_options(worker, GEARMAN_WORKER_GRAB_UNIQ);
  if (!offer(worker, argv[2])) return 2;
  for (;;) gearman_worker_work(worker);
}
