# Tests and consensus orders by base R, for the tests, from the files in data/ alone.
#
# Usage, from the top of the repository:
#   Rscript tests/reference/rankings_reference.R > tests/reference/rankings.json

items <- c("London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm")
rows <- read.csv("data/university.csv", na.strings = "")
rows$outcome[is.na(rows$outcome)] <- 0
students <- read.csv("data/university_students.csv")
people <- students$respondent

# Items by net wins, equal ones in the order of `items`
net <- sapply(items, function(item) {
  sapply(people, function(who) {
    own <- rows$respondent == who
    sum(rows$outcome[own & rows$item1 == item]) - sum(rows$outcome[own & rows$item2 == item])
  })
})
ranks <- t(apply(-net, 1, rank, ties.method = "first"))
colnames(ranks) <- items

# Kemeny: the least mean number of pairs ordered otherwise, over all orders
before <- outer(seq_along(items), seq_along(items), Vectorize(function(i, j) {
  mean(ranks[, i] < ranks[, j])
}))
orders <- function(left) {
  if (length(left) < 2) return(matrix(left, 1))
  do.call(rbind, lapply(left, function(k) cbind(k, orders(setdiff(left, k)))))
}
all_orders <- orders(seq_along(items))
scores <- apply(all_orders, 1, function(o) sum(t(before[o, o])[upper.tri(before)]))
stopifnot(sum(scores < min(scores) + 1e-9) == 1)

friedman <- friedman.test(ranks)
women <- sum(students$gender == "female")
french <- table(students$study, students$french)
chi <- suppressWarnings(chisq.test(french, correct = FALSE))
# the permutation distribution, with both margins fixed
count <- max(0, sum(french[1, ]) - sum(french[, 2])):min(sum(french[1, ]), sum(french[, 1]))
expected <- sum(french[1, ]) * sum(french[, 1]) / sum(french)
far <- abs(count - expected) >= abs(french[1, 1] - expected) - 1e-9
by_permutation <- sum(dhyper(count, sum(french[, 1]), sum(french[, 2]), sum(french[1, ]))[far])

cat(jsonlite::toJSON(
  list(
    meta = list(
      made_by = "tests/reference/rankings_reference.R",
      R = as.character(getRversion()),
      rankings = "of the University survey by net wins, equal ones in the order of the items"
    ),
    friedman = list(statistic = unname(friedman$statistic), pvalue = friedman$p.value),
    kemeny = list(order = items[all_orders[which.min(scores), ]], score = min(scores)),
    borda = as.list(length(items) - colMeans(ranks)),
    binomial = list(
      null = 0.45, female = women, n = nrow(students),
      larger = binom.test(women, nrow(students), 0.45, alternative = "greater")$p.value
    ),
    chi_square = list(
      statistic = unname(chi$statistic), pvalue = chi$p.value, by_permutation = by_permutation
    )
  ),
  auto_unbox = TRUE, digits = NA, pretty = TRUE
), "\n", sep = "")
