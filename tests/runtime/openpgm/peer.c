/* A sender and a receiver on OpenPGM, beside which ours are tested.
 *
 * peer send ADDRESS GROUP PORT COUNT BYTES     sends COUNT payloads, number and filling
 * peer receive ADDRESS GROUP PORT SECONDS      prints number and length of each that comes
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <pgm/pgm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SET(option, type, ...) do { type value = __VA_ARGS__; \
    if (!pgm_setsockopt(sock, IPPROTO_PGM, option, &value, sizeof value)) \
        return fprintf(stderr, "option " #option "\n"), 2; } while (0)

/* Debian's library copies with instructions that fail unless payloads, and what each packet has of
 * them, lie in memory as its own packets do: at 0 of 16, or at 4 behind the option of fragments. */
static char room[65536 + 16] __attribute__((aligned(16))), *payload = room, digits[16];

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    int sends = !strcmp(argv[1], "send");
    int port = atoi(argv[4]);
    char network[128];
    snprintf(network, sizeof network, "%s;%s", argv[2], argv[3]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    /* The library asks for the address of this host by its name, which is its address then. */
    if (unshare(CLONE_NEWUTS) || sethostname(argv[2], strlen(argv[2]))) return perror("name"), 2;
    pgm_error_t *error = NULL;
    pgm_sock_t *sock = NULL;
    struct pgm_addrinfo_t *where = NULL;
    if (!pgm_init(&error) || !pgm_getaddrinfo(network, NULL, &where, &error) ||
        !pgm_socket(&sock, AF_INET, SOCK_SEQPACKET, IPPROTO_PGM, &error))
        return fprintf(stderr, "%s\n", error->message), 2;
    SET(PGM_MTU, int, sends ? 1488 : 1500);
    SET(PGM_IP_ROUTER_ALERT, int, 1);
    SET(PGM_MULTICAST_HOPS, int, 16);
    SET(PGM_NOBLOCK, int, 1);
    if (sends) {
        int beats[] = {pgm_secs(1), pgm_secs(2), pgm_secs(4), pgm_secs(8), pgm_secs(15)};
        SET(PGM_SEND_ONLY, int, 1);
        SET(PGM_TXW_SQNS, int, 20000);
        /* In each millisecond a thousandth of it, which must be room for the longest payload. */
        SET(PGM_TXW_MAX_RTE, int, 20000000);
        SET(PGM_AMBIENT_SPM, int, pgm_msecs(500));
        pgm_setsockopt(sock, IPPROTO_PGM, PGM_HEARTBEAT_SPM, beats, sizeof beats);
    } else {
        SET(PGM_RECV_ONLY, int, 1);
        SET(PGM_RXW_SQNS, int, 20000);
        SET(PGM_PEER_EXPIRY, int, pgm_secs(300));
        SET(PGM_SPMR_EXPIRY, int, pgm_msecs(250));
        SET(PGM_NAK_BO_IVL, int, pgm_msecs(50));
        SET(PGM_NAK_RPT_IVL, int, pgm_msecs(750));
        SET(PGM_NAK_RDATA_IVL, int, pgm_msecs(2000));
        SET(PGM_NAK_DATA_RETRIES, int, 10);
        SET(PGM_NAK_NCF_RETRIES, int, 10);
    }
    struct pgm_sockaddr_t address;
    memset(&address, 0, sizeof address);
    address.sa_port = port;
    address.sa_addr.sport = sends ? 4711 : 0;
    if (!pgm_gsi_create_from_string(&address.sa_addr.gsi, argv[1], -1) ||
        !pgm_bind(sock, &address, sizeof address, &error))
        return fprintf(stderr, "%s\n", error->message), 2;
    for (unsigned i = 0; i < where->ai_recv_addrs_len; i++)
        pgm_setsockopt(sock, IPPROTO_PGM, PGM_JOIN_GROUP, &where->ai_recv_addrs[i],
                       sizeof(struct pgm_group_source_req));
    pgm_setsockopt(sock, IPPROTO_PGM, PGM_SEND_GROUP, &where->ai_send_addrs[0],
                   sizeof(struct pgm_group_source_req));
    if (!pgm_connect(sock, &error))
        return fprintf(stderr, "%s\n", error->message), 2;
    puts("ready");
    int count = sends ? atoi(argv[5]) : 0, size = sends ? atoi(argv[6]) : 0, next = 0;
    time_t end = time(NULL) + (sends ? 120 : atoi(argv[5]));
    while (time(NULL) < end) {
        size_t got = 0;
        if (sends && next < count) {
            /* Lengths differ, so that some have several packets and some have one. */
            int length = 8 + next * 997 % size;
            payload = room + (length > 1440 ? 4 : 0);
            memset(payload, 'a' + next % 26, length);
            snprintf(digits, sizeof digits, "%08d", next);
            memcpy(payload, digits, 8);
            if (pgm_send(sock, payload, length, &got) == PGM_IO_STATUS_NORMAL) {
                if (++next == count) puts("sent");
                continue;
            }
        }
        error = NULL;
        int status = pgm_recv(sock, payload, 65536, 0, &got, &error);
        if (status == PGM_IO_STATUS_NORMAL) {
            if (!sends) printf("%.8s %zu\n", payload, got);
            continue;
        }
        if (status == PGM_IO_STATUS_RESET) puts("reset");
        struct pollfd files[8];
        int files_count = 8;
        pgm_poll_info(sock, files, &files_count, POLLIN);
        poll(files, files_count, 5);
    }
    return 0;
}
